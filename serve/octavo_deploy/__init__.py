"""What an operator does to a `dist` folder on a server: carry releases to it, and choose which one is current.

Knows the format only: it neither builds nor serves, and needs nothing but the base install.
"""
