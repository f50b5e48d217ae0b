"""Word search over the artifact's Tantivy segment.

A query is analysed here and given to Tantivy as explicit term clauses: user text never reaches a query parser, which
would drop repeated words, read `-x` as NOT and `title:` as a field.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import tantivy
from tantivy import Filter, Occur, Query, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.gate import may_be_misspelled, spelled_alike
from octavo_artifact.text import FIELD, STOP_WORDS, prepare
from octavo_serve.ranking import Ranking, ranked

MAX_TERMS = 64
"""Distinct terms of a query that are looked up: the first ones in the text."""


class LexicalIndex:
    """BM25 over one field; a document of the index is a passage, its number the passage's row."""

    def __init__(self, directory: Path, label: str) -> None:
        """Open the index; `label` names it in messages.

        Raises ArtifactError when Tantivy cannot open it, ConfigError when there is no temporary folder.
        """
        with _lockable(directory) as links:
            try:
                index = tantivy.Index.open(str(links))
                self._searcher = index.searcher()
            except ValueError as error:
                raise ArtifactError(f"{label}: Tantivy cannot open it") from error
        self._schema = index.schema
        self._vocabulary: dict[str, dict[str, int]] = {}
        self._stems = _analyzer()
        self._topic_stems = _analyzer(Filter.custom_stopword(sorted(STOP_WORDS)))

    def terms(self, text: str) -> Counter[str]:
        """The stems of a query with their number of occurrences, in text order; at most MAX_TERMS.

        Words without a topic are left out, unless the query has no others.
        """
        prepared = prepare(text)
        stems = self._topic_stems.analyze(prepared) or self._stems.analyze(prepared)
        return Counter(dict(list(Counter(stems).items())[:MAX_TERMS]))

    def search(self, terms: Counter[str], k: int, *, type: str | None, tags: Sequence[str]) -> Ranking:  # noqa: A002  # the field's name everywhere
        """The `k` best passages that hold any of the terms, of the documents of that type and with all those tags."""
        if not terms:
            return ranked(np.empty(0, np.int64), np.empty(0, np.float32))
        clauses = [(Occur.Should, self._term(FIELD, term, count)) for term, count in terms.items()]
        query = Query.boolean_query(clauses)
        wanted = [*([("type", type)] if type is not None else []), *(("tags", tag) for tag in tags)]
        if wanted:
            filters = [(Occur.Must, Query.const_score_query(self._term(name, value), 0.0)) for name, value in wanted]
            query = Query.boolean_query([(Occur.Must, query), *filters])
        found = self._searcher.search(query, k, count=False).hits
        rows = np.array([address.doc for _, address in found], dtype=np.int64)
        scores = np.array([score for score, _ in found], dtype=np.float32)
        return replace(ranked(rows, scores), floor=float(scores.min()) if len(found) == k else 0.0)

    @property
    def passages(self) -> int:
        """How many there are."""
        return self._searcher.num_docs

    def frequency(self, term: str) -> int:
        """How many passages have a term."""
        return self._searcher.doc_freq(FIELD, term)

    def spellings(self, term: str) -> dict[str, int]:
        """The terms that a query's term may stand for, with their frequencies: itself, or those it may be a slip of."""
        if (known := self.frequency(term)) or not may_be_misspelled(term):
            return {term: known} if known else {}
        near = self._vocabulary.get(term[:2])
        if near is None and (near := dict(self._searcher.terms_with_prefix(FIELD, term[:2]))):
            self._vocabulary[term[:2]] = near  # half a millisecond each; no more of them than the pack has
        return {alike: near[alike] for alike in spelled_alike(term, near)}

    def has_topic(self, text: str) -> bool:
        """Whether any word of a query says what it is about."""
        return bool(self._topic_stems.analyze(prepare(text)))

    def words(self, text: str) -> list[str]:
        """The stems of a query, those of words without a topic too."""
        return self._stems.analyze(prepare(text))[:MAX_TERMS]

    def occurrences(self, term: str, row: int) -> int:
        """How often a passage has a term, as indexed: some of its text may not be shown."""
        try:
            explained = self._term(FIELD, term).explain(self._searcher, tantivy.DocAddress(0, row))
        except ValueError:
            return 0  # the passage does not match
        _, _, saturation = json.loads(explained.to_json())["details"]
        return int(saturation["details"][0]["value"])

    def documents(self, rows: Sequence[int]) -> list[int]:
        """The document row of each passage row."""
        addresses = [tantivy.DocAddress(0, row) for row in rows]
        return cast(list[int], self._searcher.fast_field_values("document", addresses))

    def hit(self, row: int) -> dict[str, Any]:
        """What the build stored to show a passage."""
        return json.loads(cast(bytes, self._searcher.doc(tantivy.DocAddress(0, row)).get_first("hit")))

    def hits_of(self, path: str) -> list[dict[str, Any]]:
        """What the build stored for each passage of the document with that path, in order."""
        found = self._searcher.search(self._term("path", path), max(1, self._searcher.num_docs), count=False).hits
        return [self.hit(row) for row in sorted(address.doc for _, address in found)]

    def _term(self, name: str, value: str, count: int = 1) -> Query:
        query = Query.term_query(self._schema, name, value, index_option="freq" if name == FIELD else "basic")
        return query if count == 1 else Query.boost_query(query, float(count))


def _analyzer(*filters: Filter) -> TextAnalyzer:
    """Tantivy's `en_stem`, with filters between its lower-casing and its stemmer."""
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    for extra in filters:
        builder = builder.filter(extra)
    return builder.filter(Filter.stemmer("english")).build()


@contextmanager
def _lockable(directory: Path) -> Generator[Path]:
    """The index as links in a private temporary folder.

    Tantivy opens a lock file for writing beside `meta.json` even to read (quickwit-oss/tantivy#557); an artifact is
    never written. Once the files are mapped the folder is needed no more.
    """
    try:
        # The folder is named because tempfile, left to choose, writes a probe beside it and falls back to the cwd.
        folder = Path(tempfile.mkdtemp(prefix="octavo-", dir=os.environ.get("TMPDIR") or "/tmp"))
        for file in sorted(directory.iterdir()):
            (folder / file.name).symlink_to(file.resolve())
    except OSError as error:
        reason = f"no folder for temporary files can be written ({error.strerror}); set TMPDIR to one"
        raise ConfigError(reason) from error
    try:
        yield folder
    finally:
        # Tantivy's watcher may make its lock file once more while the folder is emptied, but only once.
        for _ in range(3):
            shutil.rmtree(folder, ignore_errors=True)
