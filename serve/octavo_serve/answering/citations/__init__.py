"""Citations of an answer: its markers as they stream in, the sentences that bear them, and whether passages agree."""
