"""Cited answers: a question answered from a pack by a language model that the operator chose."""
