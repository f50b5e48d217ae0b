"""Who asks, which packs are there for that caller, and how often it may ask."""
