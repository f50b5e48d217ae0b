"""The answers that a language model gives from a pack, and how good they are."""
