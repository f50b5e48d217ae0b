"""Answers as text for a model: what it needs to use and to cite them, once. The structured content is the full record.

What a document says of itself stands in one line, its own line ends taken out; its text stands as it is. The marks are
ASCII: one character beyond it makes the SDK take half as long again to write a text that has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo_serve.answering.results import Answer, Source
from octavo_serve.labels import label as _line
from octavo_serve.results import ReadResult, SearchResult, TopicsResult, TraverseResult

_REFUSALS = {
    "empty_query": "The query is empty; ask a question.",
    "no_relevant_passage": "Nothing relevant is known here.",
}
_NO_ANSWER = {**_REFUSALS, "empty_query": "The question is empty.", "not_in_sources": "The sources do not answer this."}
_UNCHECKED = "citation_check"


def search_text(result: SearchResult) -> str:
    """The passages, each below a line that says where it stands."""
    return "\n".join(_search(result))


def read_text(result: ReadResult) -> str:
    """The lines of a document."""
    first, last = result["line_range"]
    about = _joined(result["title"], *_age(result), f"of {result['total_lines']} lines")
    head = f"{_line(result['path'])}:{first}-{last} - {about}\nRelease {result['digest']}\n\n"
    return f"{head}{result['content']}{_next(result['next_cursor'], 'More follows')}"


def topics_text(result: TopicsResult) -> str:
    """The titles by type."""
    pack = result["pack"]
    lines = [f"{_line(pack['name'])} ({pack['slug']}): {result['total']} documents\nRelease {result['digest']}"]
    for kind, topics in result["topics"].items():
        lines.append(f"\n## {_line(kind)}")
        lines += [f"- {_joined(topic['title'], *_age(topic))} - {_line(topic['path'])}" for topic in topics]
    return "\n".join(lines) + _next(result["next_cursor"], "More follow")


def traverse_text(result: TraverseResult) -> str:
    """The nodes, then the edges."""
    lines = [f"{len(result['nodes'])} of {result['total']} nodes from {_line(result['start'])}"]
    lines.append(f"Release {result['digest']}\n")
    for node in result["nodes"]:
        kind = node["kind"] if node["kind"] != "document" else node["type"] or "document"
        lines.append(f"- {_line(node['title'])} - {_line(node['id'])} ({_line(kind)}, {node['depth']} away)")
    lines += ["", *(f"{_line(e['source'])} --{_line(e['kind'])}-> {_line(e['target'])}" for e in result["edges"])]
    if result["truncated"] and result["next_cursor"] is None:
        lines.append("\nThere is more within reach: raise max_nodes, or walk on from one of these.")
    return "\n".join(lines) + _next(result["next_cursor"], "More follow")


def answer_text(result: Answer) -> str:
    """The answer, what is wrong with it, and its sources by their numbers."""
    return "\n".join(_answer(result))


def _answer(result: Answer) -> Iterator[str]:
    if result["refused"]:
        yield f"Refused: {_NO_ANSWER.get(result['reason'] or '', 'Nothing is answered.')}"
        for near in result["nearest"]:
            yield f"- near, but no answer: {_line(near['title'])} - {_line(near['id'])}"
    else:
        yield result["answer"]
        yield from _doubts(result)
    of = f"{result['pack']}, release" if result["pack"] else "Several packs, releases"
    what = "Looked at" if result["refused"] else "Sources"
    yield f"\n{what} ({of} {result['digest']}):" if result["sources"] else f"\n{of} {result['digest']}"
    for source in result["sources"]:
        yield _source(source, several=result["pack"] is None)


def _doubts(result: Answer) -> Iterator[str]:
    """What whoever reads an answer should know of it."""
    if result["truncated"]:
        yield "\nThe answer is cut: the model may not write more."
    if _UNCHECKED in result["missing"]:
        yield "\nNobody has checked whether the sources say so."
    if result["unsupported"]:
        yield "\nNot supported by what it cites:"
    for sentence in result["unsupported"]:
        cited = ", ".join(map(str, sentence["numbers"]))
        other = f"; but [{sentence['supported_by']}] says it" if sentence["supported_by"] else ""
        yield f"- {_line(sentence['sentence'])} (cites {cited}; {_line(sentence['reason'])}{other})"
    if result["invalid_citations"]:
        numbers = ", ".join(str(wrong["number"]) for wrong in result["invalid_citations"])
        yield f"\nCited, but no source: {numbers}"


def _source(source: Source, *, several: bool) -> str:
    path = [source["title"], *(each for each in source["heading_path"] if each != source["title"])]
    first, last = source["line_range"]
    place = f"{source['pack']}/{source['source_file']}" if several else source["source_file"]
    return f"[{source['number']}] {_line(place)}:{first}-{last} - {_joined(' > '.join(path), *_age(source))}"


def _search(result: SearchResult) -> Iterator[str]:
    of = f"{result['pack']}, release" if result["pack"] else "Several packs, releases"
    yield f"{of} {result['digest']}"
    if result["missing"]:
        yield f"Degraded: without {', '.join(result['missing'])} the answer may be worse."
    if result["doubtful"]:
        yield f"Doubtful (probability {result['answer_probability']}): read before you cite."
    if result["refused"]:
        yield _REFUSALS.get(result["reason"] or "", "Nothing is returned.")
        for near in result["nearest"]:
            yield f"- near, but no answer: {_line(near['title'])} - {_line(near['id'])}"
    for number, hit in enumerate(result["results"], _first(result)):
        yield from _hit(number, hit, several=result["pack"] is None)
    if result["next_cursor"]:
        yield _next(result["next_cursor"], f"More of {result['total']} passages follow").strip("\n")


def _first(result: SearchResult) -> int:
    """The number of the first passage: a cursor begins with that of the last one before it."""
    last = result["next_cursor"].partition("-")[0] if result["next_cursor"] else result["total"]
    return 1 + int(last) - len(result["results"])


def _hit(number: int, hit: Mapping[str, Any], *, several: bool) -> Iterator[str]:
    path = [hit["title"], *(each for each in hit["heading_path"] if each != hit["title"])]
    first, last = hit["line_range"]
    place = f"{hit['pack']}/{hit['source_file']}" if several else hit["source_file"]
    added = ["required by a result"] if hit.get("requires_expanded") else []
    marks = [*_age(hit), *added, *(["linked with a result"] if hit.get("graph_expanded") else [])]
    yield f"\n## {number}. {_joined(' > '.join(path), *marks)}"
    yield f"{_line(place)}:{first}-{last} - {_line(hit['fragment_id'])}\n"
    yield hit["text"].rstrip("\n")
    if shown := hit.get("shown_range"):
        yield f"[cut for its size; read on with ep_read from start_line {shown[1]}]"


def _age(told: Mapping[str, Any]) -> list[str]:
    if told["expired"]:
        return [f"expired {told['expires_at']}" if told.get("expires_at") else "expired"]
    return ["should have been verified again"] if told["age_stale"] else []


def _next(cursor: str | None, what: str) -> str:
    return f"\n\n{what}: repeat the request with cursor {cursor}" if cursor else ""


def _joined(*words: str) -> str:
    return ", ".join(map(_line, words))
