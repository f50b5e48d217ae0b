"""Evidence for retrieval: known collections and our own questions, asked with each stage of the search off in turn.

`python -m octavo_evals.evidence` compiles the collections of `evals/retrieval/collections.yaml`, asks them, keeps the
figures beside that file and writes `evals/RETRIEVAL.md` from them.
"""
