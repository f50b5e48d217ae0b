"""Static checks of a pack's source: pure functions from what was read to findings.

`subject` is what a check sees, one module a family holds the checks, `checks` lists them, `codes` says how bad each
finding is and what to do, `render` prints, `command` is the shell's side. Nothing here builds anything.
"""
