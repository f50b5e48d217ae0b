"""The artifact format: what the compiler writes and the server reads. Standard library only."""

__version__ = "0.1.0"
