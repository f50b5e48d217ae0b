"""Whether an answer is what its receipt says, and rests on what the releases say: offline, link by link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from octavo_artifact.errors import ArtifactError, OctavoError, RequestError
from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.model import Message
from octavo_serve.answering.prompt import Prompt
from octavo_serve.answering.receipts import Releases, parse_receipt, rebuild, releases_in
from octavo_serve.answering.results import AnswerCitation, Receipt


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found to hold."""

    holds: tuple[str, ...]
    """A line for each link, in order."""
    error: str | None
    """The first that does not hold; None when all do."""
    messages: tuple[Message, ...]
    """The prompt, made again; empty where that failed."""


def prove_answer(answer: Mapping[str, Any], dist: Path) -> Proof:
    """Check an answer, or as much of one as stands beside its `receipt`, against the releases in `dist`.

    Raises RequestError for what is no answer.
    """
    receipt = answer["receipt"]
    holds: list[str] = []
    messages: tuple[Message, ...] = ()
    try:
        receipt, releases = parse_receipt(receipt), releases_in(dist)
        prompt = rebuild(receipt, releases)
        messages = prompt.messages
        counts = Counter((passage["pack"], passage["digest"]) for passage in receipt["passages"])
        holds += [f"{slug}@{digest[:12]} has the passages: {count}" for (slug, digest), count in counts.items()]
        holds.append(f"the prompt is made again: sha256 {prompt.sha256}")
        if "answer" in answer:
            _check_words(answer["answer"], receipt)
            holds.append(f"the answer is the one of the receipt: sha256 {receipt['answer_sha256']}")
        if "sources" in answer:
            sources = _parsed(list[dict[str, Any]], answer, "sources")
            _check_sources(sources, prompt)
            holds.append(f"the sources are those of the prompt: {len(sources)}")
        if "citations" in answer:
            citations = _parsed(list[AnswerCitation], answer, "citations")
            _check_evidence(citations, prompt, releases)
            holds.append(f"the evidence of citations stands in their sources: {len(citations)}")
    except RequestError:
        raise
    except OctavoError as error:
        return Proof(tuple(holds), str(error), messages)
    return Proof(tuple(holds), None, messages)


def _parsed(kind: Any, answer: Mapping[str, Any], name: str) -> Any:
    try:
        return TypeAdapter(kind).validate_python(answer[name], strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RequestError(name, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _check_words(answer: object, receipt: Receipt) -> None:
    """Whether these are the words that the receipt is for."""
    found = sha256_hex(answer.encode("utf-8", "surrogatepass")) if isinstance(answer, str) else "none"
    if found != receipt["answer_sha256"]:
        raise ArtifactError(f"answer: its sha256 is {found[:12]}, the receipt says {receipt['answer_sha256'][:12]}")


def _check_sources(sources: Sequence[Mapping[str, Any]], prompt: Prompt) -> None:
    """Whether these are the sources of the prompt, by all that is told of them but their scores."""
    if len(sources) != len(prompt.sources):
        raise ArtifactError(f"sources: {len(sources)}, the prompt has {len(prompt.sources)}")
    for number, (source, shown) in enumerate(zip(sources, prompt.sources, strict=True), 1):
        expected = {**shown.hit, "text": shown.text, "shown": len(shown.text), "number": number}
        for name, value in source.items():
            if name != "score" and (name not in expected or expected[name] != value):
                raise ArtifactError(f"source {number}: {name} is not what its release says")


def _check_evidence(citations: Sequence[AnswerCitation], prompt: Prompt, releases: Releases) -> None:
    """Whether the evidence of each citation stands in the passage that it cites, to the byte."""
    for citation in citations:
        number, evidence = citation["number"], citation["evidence"]
        if not 1 <= number <= len(prompt.sources):
            raise ArtifactError(f"citation [{number}]: the prompt has {len(prompt.sources)} sources")
        hit = prompt.sources[number - 1].hit
        first, last = hit["byte_range"]
        start, end = evidence["byte_range"] if len(evidence["byte_range"]) == 2 else (-1, -1)
        if any(evidence[name] != hit[name] for name in ("source_file", "fragment_id")):
            raise ArtifactError(f"citation [{number}]: its evidence is of another passage")
        if not first <= start <= end <= last:
            raise ArtifactError(f"citation [{number}]: bytes {start} to {end}, its passage has {first} to {last}")
        raw = releases(hit["pack"], hit["digest"]).raw(hit["source_file"])
        if sha256_hex(raw[start:end]) != evidence["sha256"]:
            raise ArtifactError(f"citation [{number}]: bytes {start} to {end} have another sha256 than its evidence")
