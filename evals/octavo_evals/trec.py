"""Labelled collections as the field keeps them: BEIR folders, TREC qrels and topics, TREC runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from octavo_artifact.errors import PackError
from octavo_evals.results import Results


@dataclass(frozen=True, slots=True)
class Topic:
    """A question with its judged documents."""

    query_id: str
    text: str
    qrels: tuple[tuple[str, int], ...]
    """(document id, grade), best first, then by id."""


def read_beir(folder: Path) -> tuple[Topic, ...]:
    """The questions of a BEIR folder that have labels, in the order of `queries.jsonl`.

    Labels are in `qrels.tsv`, else in `qrels/test.tsv`, else in the only file of `qrels/`. Raises PackError.
    """
    queries = folder / "queries.jsonl"
    if not queries.is_file():
        raise PackError(f"{folder.name}: no queries.jsonl; expected a BEIR folder, or name a file of questions")
    candidates = [folder / "qrels.tsv", folder / "qrels" / "test.tsv", *sorted((folder / "qrels").glob("*.tsv"))]
    found = [path for path in dict.fromkeys(candidates) if path.is_file()]
    if not found or (len(found) > 1 and found[0].name not in ("qrels.tsv", "test.tsv")):
        raise PackError(f"{folder.name}: expected qrels.tsv, qrels/test.tsv or one file in qrels/")
    return _topics(found[0], _qrels(found[0]), _jsonl(queries))


def read_trec(qrels: Path, topics: Path) -> tuple[Topic, ...]:
    """The questions of `topics` (`id<TAB>text` a line, or BEIR's JSON Lines) that `qrels` has labels for."""
    texts = _jsonl(topics) if topics.suffix == ".jsonl" else _tsv(topics)
    return _topics(qrels, _qrels(qrels), texts)


def trec_run(results: Results, tag: str = "octavo") -> str:
    """The files that were found as a TREC run: `query_id Q0 doc_id rank score tag`.

    The score is 1 / rank: TREC's tools order by score, and a server's own need not fall from rank to rank. Spaces in
    paths are written as `%20`.
    """
    return "".join(
        f"{query.id} Q0 {doc.doc_id.replace(' ', '%20')} {rank} {1 / rank:.6f} {tag}\n"
        for query in results.queries
        for rank, doc in enumerate(query.run, 1)
    )


def _topics(file: Path, qrels: Mapping[str, Mapping[str, int]], texts: Mapping[str, str]) -> tuple[Topic, ...]:
    if missing := sorted(qrels.keys() - texts.keys()):
        raise PackError(f"{file.name}: labels the question {missing[0]!r}, whose text is nowhere")
    return tuple(
        Topic(query_id, text, tuple(sorted(qrels[query_id].items(), key=lambda item: (-item[1], item[0]))))
        for query_id, text in texts.items()
        if query_id in qrels
    )


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    """`query_id 0 doc_id grade` (TREC), or `query_id doc_id grade` under a header (BEIR)."""
    read: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        try:
            query_id, doc_id, grade = (fields[0], fields[-2], fields[-1]) if len(fields) in (3, 4) else ("", "", "")
            read.setdefault(query_id, {})[doc_id] = int(grade)
        except ValueError as error:
            if number == 1:
                read.clear()  # BEIR's header
                continue
            raise PackError(f"{path.name}:{number}: expected query, document and a whole number as grade") from error
    return read


def _jsonl(path: Path) -> dict[str, str]:
    read: dict[str, str] = {}
    for number, line in _lines(path):
        try:
            fields = json.loads(line)
            query_id, text = str(fields["_id"]), str(fields["text"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PackError(f"{path.name}:{number}: expected a JSON object with _id and text") from error
        if query_id in read:
            raise PackError(f"{path.name}:{number}: the id {query_id!r} stands twice")
        read[query_id] = text
    return read


def _tsv(path: Path) -> dict[str, str]:
    read: dict[str, str] = {}
    for number, line in _lines(path):
        query_id, tab, text = line.partition("\t")
        if not tab or query_id in read:
            raise PackError(f"{path.name}:{number}: expected a new id, a tab and the question")
        read[query_id] = text.strip()
    return read


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8") as file:
        yield from ((number, line) for number, line in enumerate(map(str.strip, file), 1) if line)
