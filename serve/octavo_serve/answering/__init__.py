"""Cited answers: a question answered by a language model from the passages of a search."""
