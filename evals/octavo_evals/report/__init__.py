"""Results of evaluations as one page for people."""
