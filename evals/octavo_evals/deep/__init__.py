"""Checks of a built artifact that need its search: findings of `octavo lint --deep`.

`subject` is what a check sees, one module holds a check or two, `checks` lists them. The checks give plain data: lint,
which may not import the server, knows the codes and renders.
"""
