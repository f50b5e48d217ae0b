"""Word search over the Tantivy segments of one or several artifacts.

A query is analysed here and given to Tantivy as explicit term clauses: user text never reaches a query parser, which
would drop repeated words, read `-x` as NOT and `title:` as a field.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import tantivy
from pydantic_core import from_json
from tantivy import Filter, Occur, Query, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.gate import may_be_misspelled, spelled_alike
from octavo_artifact.ids import canonical_json
from octavo_artifact.text import FIELD, LITERALS, Term, query_terms
from octavo_serve.filters import Filters
from octavo_serve.ranking import EMPTY, Ranking, Rows, ranked

_META = "meta.json"
# a term as Tantivy's explanation has it, printed for debugging
_EXPLAINED = re.compile(r'Term\(field=\d+, type=Str, "(.*)"\)')
_ESCAPED = re.compile(r"\\u\{([0-9a-f]+)\}")
_MAX_SPELLINGS = 5
"""Words that one misspelled word is looked up as: the commonest."""


def stem(text: str, stemmer: str) -> list[str]:
    """See `octavo_artifact.text.Stem`; the compiler has the same lines, and a test compares the two."""
    return _analyzer(stemmer).analyze(text)


@cache
def _analyzer(stemmer: str) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    return (builder.filter(Filter.stemmer(stemmer)) if stemmer else builder).build()


def _character(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


class LexicalIndex:
    """BM25 over one field; a document of the index is a passage. Safe to call from several threads.

    The segments of several artifacts are linked into one index, so that scores are those of one collection: rows
    count on from one artifact to the next.
    """

    def __init__(self, directories: Sequence[Path], label: str, languages: Sequence[str]) -> None:
        """Open the indexes; `label` names them in messages, `languages` are those of their passages.

        Raises ArtifactError when Tantivy cannot open them, ConfigError when there is no temporary folder.
        """
        self.languages = tuple(languages)
        try:
            with _linked(directories) as (folder, sizes):
                index = tantivy.Index.open(str(folder))
                self._searcher = index.searcher()
        except (ValueError, KeyError, OSError) as error:
            raise ArtifactError(f"{label}: Tantivy cannot open it") from error
        self._schema = index.schema
        self.starts: Rows = np.cumsum([0, *sizes], dtype=np.int64)
        """First row of each artifact, and the number of all rows: int64 [artifacts + 1]."""
        self._segments = np.cumsum([0, *(size > 0 for size in sizes)])
        self._vocabulary: dict[str, dict[str, int]] = {}

    def terms(self, text: str) -> Counter[Term]:
        """The terms of a query; see `octavo_artifact.text.query_terms`."""
        return query_terms(text, self.languages, stem)

    def search(
        self,
        terms: Counter[Term],
        k: int,
        filters: Filters | None = None,
        *,
        literals: Sequence[str] = (),
        phrases: Sequence[Sequence[Term]] = (),
        typo_cost: float = 1.0,
    ) -> Ranking:
        """The `k` best passages that hold any of the terms, of the documents that `filters` admit.

        A literal counts as one more term, and so does a phrase, where its terms stand together; `phrases` has the
        terms of each in every language.
        """
        clauses = [*(self._any_of(term, count, typo_cost) for term, count in terms.items())]
        clauses += [self._term(LITERALS, literal) for literal in literals]
        clauses += map(self._phrase, phrases)
        return self._ranked([clause for clause in clauses if clause is not None], k, filters)

    def with_literal(self, literal: str) -> Rows:
        """The passages that have a literal, ascending."""
        return self._having(LITERALS, literal)

    @property
    def passages(self) -> int:
        """How many there are."""
        return self._searcher.num_docs

    def frequency(self, spelling: str, field: str = FIELD) -> int:
        """How many passages have a term."""
        return self._searcher.doc_freq(field, spelling)

    def spellings(self, term: Term) -> dict[str, int]:
        """The spellings that a query's term may stand for, with their frequencies: its own stems, or those that it may
        be a slip of.
        """
        known = {spelling: found for spelling in term if (found := self.frequency(spelling))}
        if known:
            return known
        return {alike: found for spelling in term for alike, found in self._alike(spelling).items()}

    def occurrences(self, spellings: Sequence[str], rows: Sequence[int]) -> Iterator[dict[str, int]]:
        """How often each passage has which of the terms, as indexed: some of its text may not be shown."""
        query = Query.boolean_query([(Occur.Should, self._term(FIELD, spelling)) for spelling in spellings])
        return (dict(self._explained(query, row)) for row in rows)

    def _explained(self, query: Query, row: int) -> Iterator[tuple[str, int]]:
        try:
            explained = from_json(query.explain(self._searcher, self._address(row)).to_json())
        except ValueError:
            return  # the passage does not match
        for clause in explained["details"] if "context" not in explained else [explained]:
            term = _EXPLAINED.search(clause["context"][0])
            if term:
                _, _, saturation = clause["details"]
                yield _ESCAPED.sub(_character, term[1]), int(saturation["details"][0]["value"])

    @cached_property
    def of_document(self) -> Rows:
        """The document row, in its artifact, of each passage: int64 [passages]."""
        return np.array(self._fast("document", range(self.passages)), dtype=np.int64)

    def documents(self, rows: Sequence[int]) -> list[int]:
        """The document row, in its artifact, of each of these passages."""
        return self.of_document[np.asarray(rows, dtype=np.int64)].tolist()

    def tokens(self, rows: Sequence[int]) -> list[int]:
        """The estimated tokens of each passage."""
        return self._fast("tokens", rows)

    def hit(self, row: int) -> dict[str, Any]:
        """What the build stored to show a passage."""
        return from_json(cast(bytes, self._searcher.doc(self._address(row)).get_first("hit")))

    def hits_of(self, path: str) -> list[dict[str, Any]]:
        """What the build stored for each passage of the documents with that path, in order."""
        return [self.hit(row) for row in self._having("path", path).tolist()]

    def _having(self, field: str, value: str) -> Rows:
        """The passages with that value, ascending; Tantivy reserves memory for as many as may be found."""
        most = max(1, self.frequency(value, field))
        found = self._searcher.search(self._term(field, value), most, count=False).hits
        return np.sort(self._rows([address for _, address in found]))

    def _ranked(self, clauses: list[Query], k: int, filters: Filters | None) -> Ranking:
        if not clauses:
            return EMPTY
        query = self._filtered(Query.boolean_query([(Occur.Should, clause) for clause in clauses]), filters)
        found = self._searcher.search(query, k, count=False).hits
        rows = self._rows([address for _, address in found])
        scores = np.array([score for score, _ in found], dtype=np.float32)
        return ranked(rows, scores)

    def _any_of(self, term: Term, count: int, typo_cost: float) -> Query | None:
        """A query for a word in whichever spelling: one passage has it in one language, so the best counts."""
        known = [spelling for spelling in term if self.frequency(spelling)] if len(term) > 1 or typo_cost < 1 else term
        weight = float(count)
        if not known and typo_cost < 1:
            alike = {near: found for spelling in term for near, found in self._alike(spelling).items()}
            known = sorted(alike, key=lambda near: (-alike[near], near))[:_MAX_SPELLINGS]
            weight *= 1 - typo_cost
        if not known:
            return None
        queries = [self._term(FIELD, spelling) for spelling in known]
        query = queries[0] if len(queries) == 1 else Query.disjunction_max_query(queries)
        return query if weight == 1 else Query.boost_query(query, weight)

    def _alike(self, spelling: str) -> dict[str, int]:
        if not may_be_misspelled(spelling):
            return {}
        near = self._vocabulary.get(spelling[:2])
        if near is None and (near := dict(self._searcher.terms_with_prefix(FIELD, spelling[:2]))):
            self._vocabulary[spelling[:2]] = near  # half a millisecond each; no more of them than the pack has
        return {alike: near[alike] for alike in spelled_alike(spelling, near)}

    def _phrase(self, phrase: Sequence[Term]) -> Query | None:
        queries = [Query.phrase_query(self._schema, FIELD, list(terms)) for terms in phrase if len(terms) > 1]
        return Query.disjunction_max_query(queries) if queries else None

    def _filtered(self, query: Query, filters: Filters | None) -> Query:
        if not filters:
            return query
        wanted = [self._term("tags", tag) for tag in filters.tags]
        wanted += [
            self._term(name, value) for name in ("type", "tier") if (value := getattr(filters, name)) is not None
        ]
        if filters.path is not None:
            places = [self._term(name, filters.path) for name in ("path", "folders")]
            wanted.append(Query.boolean_query([(Occur.Should, place) for place in places]))
        if (since := filters.verified_since) is not None:
            kind = tantivy.FieldType.Integer
            wanted.append(Query.range_query(self._schema, "verified_day", kind, since.toordinal(), None))
        must = [(Occur.Must, Query.const_score_query(each, 0.0)) for each in wanted]
        return Query.boolean_query([(Occur.Must, query), *must])

    def _term(self, name: str, value: str) -> Query:
        return Query.term_query(self._schema, name, value, index_option="freq" if name == FIELD else "basic")

    def _fast(self, name: str, rows: Sequence[int]) -> list[int]:
        return cast(list[int], self._searcher.fast_field_values(name, [self._address(row) for row in rows]))

    def _address(self, row: int) -> tantivy.DocAddress:
        if len(self.starts) == 2:
            return tantivy.DocAddress(0, row)
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        return tantivy.DocAddress(int(self._segments[part]), row - int(self.starts[part]))

    def _rows(self, addresses: Sequence[tantivy.DocAddress]) -> Rows:
        rows = np.array([address.doc for address in addresses], dtype=np.int64)
        if len(self.starts) == 2:
            return rows
        filled = self.starts[:-1][np.diff(self.starts) > 0]
        return rows + filled[np.array([address.segment_ord for address in addresses], dtype=np.int64)]


@contextmanager
def _linked(directories: Sequence[Path]) -> Generator[tuple[Path, list[int]]]:
    """The indexes as one, made of links in a private temporary folder, and the number of documents of each.

    Segments are named anew by their order: those of packs with equal texts may have equal names.

    Tantivy opens a lock file for writing beside `meta.json` even to read (quickwit-oss/tantivy#557); an artifact is
    never written. Once the files are mapped the folder is needed no more.
    """
    metas = [json.loads((directory / _META).read_bytes()) for directory in directories]
    with _temporary_folder() as folder:
        segments = [
            (directory, segment)
            for directory, meta in zip(directories, metas, strict=True)
            for segment in meta["segments"]
        ]
        for number, (directory, segment) in enumerate(segments):
            name = uuid.UUID(int=number)
            for file in directory.glob(f"{uuid.UUID(segment['segment_id']).hex}.*"):
                (folder / file.name.replace(file.stem, name.hex)).symlink_to(file.resolve())
            segment["segment_id"] = str(name)
        joined = {**metas[0], "segments": [segment for _, segment in segments]}
        (folder / _META).write_bytes(canonical_json(joined))
        yield folder, [sum(segment["max_doc"] for segment in meta["segments"]) for meta in metas]


@contextmanager
def _temporary_folder() -> Generator[Path]:
    try:
        # The folder is named because tempfile, left to choose, writes a probe beside it and falls back to the cwd.
        folder = Path(tempfile.mkdtemp(prefix="octavo-", dir=os.environ.get("TMPDIR") or "/tmp"))
    except OSError as error:
        reason = f"no folder for temporary files can be written ({error.strerror}); set TMPDIR to one"
        raise ConfigError(reason) from error
    try:
        yield folder
    finally:
        # Tantivy's watcher may make its lock file once more while the folder is emptied, but only once.
        for _ in range(3):
            shutil.rmtree(folder, ignore_errors=True)
