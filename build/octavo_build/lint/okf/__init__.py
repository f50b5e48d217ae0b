"""Checks of an OKF bundle: what the format demands, and what other validators of it have found worth telling.

`bundle` is what a check sees, one module a family holds the checks, `checks` lists them, `codes` says how bad each
finding is, what to do, and whether the format's text or only custom asks for it.
"""
