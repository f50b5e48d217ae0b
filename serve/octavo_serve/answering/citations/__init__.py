"""Citations: where a stream has them, which sentences they are of, and whether the sources say so."""
