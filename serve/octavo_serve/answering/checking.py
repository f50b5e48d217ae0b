"""The checks of a finished answer: what each cited sentence rests on, to the byte."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.citations.sentences import CitedSentence, sentences
from octavo_serve.answering.citations.support import Encode, Verdict, check
from octavo_serve.answering.prompt import Shown
from octavo_serve.answering.results import AnswerCitation, Evidence, Uncited, Unsupported
from octavo_serve.answering.retriever import Retriever

ENCODER = "citation_encoder"
"""What is missing where sentences were compared with sources by their words alone."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check of an answer found."""

    citations: tuple[AnswerCitation, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    uncited: tuple[Uncited, ...] = ()
    missing: tuple[str, ...] = ()
    """`ENCODER`, or nothing."""


def check_answer(answer: str, sources: Sequence[Shown], retriever: Retriever) -> Checked:
    """Each sentence that cites, against each source that it cites, in the order of the answer.

    A sentence is unsupported when none of these supports it, nor all of them together; the others are looked at then.
    Where no encoder is at hand, or it fails, words decide.
    """
    checker = _Checker(retriever)
    citations: list[AnswerCitation] = []
    unsupported: list[Unsupported] = []
    uncited: list[Uncited] = []
    for sentence in sentences(answer):
        numbers = [number for number in sentence.numbers if number <= len(sources)]
        if not numbers:
            uncited.append({"sentence": sentence.text, "range": [sentence.start, sentence.end]})
            continue
        verdicts = {number: checker.verdict(sentence, sources[number - 1]) for number in numbers}
        citations += [_citation(sentence, number, sources[number - 1], verdicts[number]) for number in numbers]
        if any(each.supported for each in verdicts.values()):
            continue
        if len(numbers) > 1 and checker.verdict(sentence, _joined(sources, numbers)).supported:
            continue
        best = max(verdicts.values(), key=lambda each: each.score)
        others = (number for number in range(1, len(sources) + 1) if number not in numbers)
        found = (n for n in others if checker.verdict(sentence, sources[n - 1]).supported)
        unsupported.append(
            {
                "sentence": sentence.text,
                "range": [sentence.start, sentence.end],
                "numbers": numbers,
                "reason": best.reason or "terms",
                "supported_by": next(found, None),
            }
        )
    return Checked(tuple(citations), tuple(unsupported), tuple(uncited), (ENCODER,) if checker.lacked else ())


class _UnencodedError(Exception):
    """The encoder failed."""


class _Checker:
    """Checks sentences, and notes whether an encoder was lacking."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._failed = False
        self.lacked = False

    def verdict(self, sentence: CitedSentence, source: Shown) -> Verdict:
        """Whether the source says what the sentence says."""
        context = "\n".join([source.hit["title"], *source.hit["heading_path"]])
        encode = None if self._failed else self._encoder(source)
        try:
            return check(sentence.text, source.text, encode, context)
        except _UnencodedError:
            self._failed = self.lacked = True
            return check(sentence.text, source.text, None, context)

    def _encoder(self, source: Shown) -> Encode | None:
        encoder = self._retriever.encoder(source.hit["pack"], source.hit["digest"])
        if encoder is None:
            self.lacked = True
            return None

        def encode(text: str) -> Any:
            try:
                return encoder(text)
            except Exception as error:  # whatever a runtime or an endpoint raises
                _logger.warning("sentences are compared by words only: the encoder failed (%s)", type(error).__name__)
                raise _UnencodedError from error

        return encode


def _joined(sources: Sequence[Shown], numbers: Sequence[int]) -> Shown:
    """What several sources say together, where a sentence takes a part from each."""
    cited = [sources[number - 1] for number in numbers]
    return Shown(cited[0].hit, "\n\n".join(each.text for each in cited))


def _citation(sentence: CitedSentence, number: int, source: Shown, verdict: Verdict) -> AnswerCitation:
    return {
        "sentence": sentence.text,
        "range": [sentence.start, sentence.end],
        "number": number,
        "supported": verdict.supported,
        "score": round(verdict.score, 4),
        "evidence": evidence(source, verdict.span),
    }


def evidence(source: Shown, span: tuple[int, int]) -> Evidence:
    """Characters `span` of a source as bytes of its file; the whole passage where its text is not the file's."""
    hit = source.hit
    start, end = hit["byte_range"]
    written = hit["text"].removeprefix(hit["added_text"])
    first, last = (max(0, offset - len(hit["added_text"])) for offset in span)
    data = written.encode()
    if "shown_range" in hit or sha256_hex(data) != hit["span_sha256"] or first >= last:
        byte_range, sha256 = [start, end], hit["span_sha256"]
    else:
        begin, stop = (len(written[:offset].encode()) for offset in (first, min(last, len(written))))
        byte_range, sha256 = [start + begin, start + stop], sha256_hex(data[begin:stop])
    return {
        "fragment_id": hit["fragment_id"],
        "source_file": hit["source_file"],
        "byte_range": byte_range,
        "sha256": sha256,
    }
