"""What changed from one release of a pack to the next: for its release notes, and for those who review them."""
