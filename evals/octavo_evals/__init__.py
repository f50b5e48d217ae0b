"""Offline evaluation against artifacts, through the same code that serves them."""
