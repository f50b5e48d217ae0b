"""The stages of a search, one module for each or for a few that belong together; `search` has their order."""
