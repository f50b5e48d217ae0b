"""The way of an answer: passages, a prompt, the model's words as they come, and what the check of them found.

The events of one answer are `sources`, any number of `token`, and `done`; or `error` instead of what did not come.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from time import perf_counter
from typing import Any, Literal, cast

from octavo_artifact.errors import RequestError
from octavo_artifact.text import DEFAULT_LANGUAGE, STOP_WORDS
from octavo_serve.answering.checking import Checked, check_answer
from octavo_serve.answering.citations.markers import Markers
from octavo_serve.answering.model import Ended, Model, ModelError, Sampling, Text, Usage, cost
from octavo_serve.answering.outcomes import End, Observe, Outcome, of_outcome, of_request, of_response, unobserved
from octavo_serve.answering.prompt import REFUSAL, Prompt, Shown, make_prompt
from octavo_serve.answering.receipts import receipt_of
from octavo_serve.answering.results import Done, Failure, Reason, Source, Sources, Stage, Timings
from octavo_serve.answering.retriever import Connection, RetrievalError, Retriever, RetrieverOf, in_process
from octavo_serve.answering.settings import AnswerSettings
from octavo_serve.answering.slots import Slot, Slots
from octavo_serve.answering.spans import FIRST_TOKEN, GENERATION, RETRIEVAL, AnswerSpan, AnswerSpans, Untraced, kind_of
from octavo_serve.callers.views import View
from octavo_serve.faces import BusyError, UnavailableError, Workers, message
from octavo_serve.query import analyse
from octavo_serve.requests import MAX_SOURCES, AskRequest, SearchRequest
from octavo_serve.results import Authority, Hit, SearchResult

_logger = logging.getLogger(__name__)

_NO_WORDS = re.compile(r"\W+")
_MARKER = re.compile(r"\[[0-9]+\]")

EventName = Literal["sources", "token", "done", "error"]


@dataclass(frozen=True, slots=True)
class Event:
    """A part of an answer; see `results` for its data."""

    name: EventName
    data: Any


@dataclass(slots=True)
class _Progress:
    """How far an answer is."""

    asked: AskRequest
    day: date
    span: AnswerSpan
    trace_id: str
    started: float = field(default_factory=perf_counter)
    stage: Stage = "retrieval"
    found: SearchResult | None = None
    sent: float | None = None
    """When the prompt was."""
    first: float | None = None
    """When the first piece of the answer came."""
    last: float | None = None
    markers: Markers = field(default_factory=lambda: Markers(0))
    sources: tuple[Source, ...] = ()
    usage: Usage | None = None
    end: End = "left"
    """Unless something else becomes of it, whoever asked has left."""
    reason: Reason | None = None
    error: Exception | None = None
    missing: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        return self.markers.answer

    def timings(self) -> Timings:
        """Until now."""
        now = perf_counter()
        retrieved = self.sent or now
        return {
            "retrieval_ms": _milliseconds(self.started, retrieved),
            "ttft_ms": None if self.first is None else _milliseconds(retrieved, self.first),
            "generation_ms": None if self.last is None else _milliseconds(retrieved, self.last),
            "total_ms": _milliseconds(self.started, now),
        }


class Answerer:
    """Writes answers with one model. Used from the event loop only."""

    def __init__(
        self,
        model: Model,
        settings: AnswerSettings,
        workers: Workers,
        *,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        new_seed: Callable[[], str] = lambda: secrets.token_hex(16),
        observe: Observe = unobserved,
        retriever_of: RetrieverOf | None = None,
        spans: AnswerSpans = Untraced,
        connection: Connection | None = None,
    ) -> None:
        """`today` gives the day of questions that name none, `new_seed` that of a fence: nobody may guess it.

        `retriever_of` says who finds passages for a caller, by a `connection` if it needs one; without it the packs of
        this server do. `spans` begins the span of an answer, whose trace then names it.
        """
        self.settings = settings
        self._model = model
        self._workers = workers
        self._today = today
        self._new_seed = new_seed
        self._observe = observe
        self._retriever_of = retriever_of or in_process(workers)
        self._spans = spans
        self._connection = connection
        self._slots = Slots(settings.max_concurrent)
        chosen = settings.model
        self._sampling = Sampling(chosen.max_tokens, chosen.temperature, chosen.top_p, chosen.seed)

    @property
    def in_flight(self) -> int:
        """Answers that are being written."""
        return self._slots.taken

    @property
    def slots(self) -> int:
        """Answers that are written at once at most."""
        return self._slots.count

    @contextmanager
    def slot(self) -> Generator[Slot]:
        """To be held while `events` are taken. Raises BusyError when all are taken."""
        with ExitStack() as stack:
            try:
                slot = stack.enter_context(self._slots.one())
            except BusyError as error:
                self._observe(Outcome("busy", error=error))
                raise
            yield slot

    def retriever(self, view: View) -> Retriever:
        """Who finds passages for a caller that sees so much."""
        return self._retriever_of(view)

    async def warm_up(self) -> None:
        """Have the model ready, and whoever finds passages elsewhere."""
        if self._connection is not None:
            await self._connection.warm_up()
        await self._model.warm_up()

    async def close(self) -> None:
        """End what is open."""
        await self._model.close()
        if self._connection is not None:
            await self._connection.close()

    async def events(
        self, asked: AskRequest, retriever: Retriever, trace_id: str, slot: Slot | None = None
    ) -> AsyncGenerator[Event]:
        """The answer to a question; whoever stops early has to close it, which stops the work upstream.

        Before the first event it raises RequestError for a question that cannot be asked so, and UnavailableError
        when the same one may succeed later; after that nothing. `trace_id` names the answer where nobody traces it.
        `slot` is free when the last event comes: whoever has that asks again.
        """
        free = slot.free if slot else _nothing
        span = self._spans()
        progress = _Progress(asked, asked.as_of or self._today(), span, span.trace_id or trace_id)
        try:
            async with aclosing(self._events(progress, retriever)) as events:
                async for event in events:
                    if event.name == "done":
                        progress.end = "refused" if event.data["refused"] else "answered"
                        progress.reason = event.data["reason"]
                        progress.missing = tuple(event.data["missing"])
                        free()
                    yield event
        except (RequestError, UnavailableError) as error:
            # of the search, before the first event
            progress.end = "invalid" if isinstance(error, RequestError) else "failed"
            progress.error = error
            raise
        except (ModelError, RetrievalError) as error:
            progress.end, progress.error = "failed", error
            free()
            yield self._failed(progress, message(error))
        except Exception as error:
            _logger.exception("an answer failed")
            progress.end, progress.error = "failed", error
            free()
            yield self._failed(progress, "the server failed; its log says why")
        finally:
            outcome = self._outcome(progress)
            failed = outcome.error if outcome.end == "failed" else None
            span.end(of_outcome(outcome), kind_of(failed) if failed else None)
            self._observe(outcome)

    def _outcome(self, progress: _Progress) -> Outcome:
        prices = self.settings.model.price_in, self.settings.model.price_out
        return Outcome(
            end=progress.end,
            asked=progress.asked,
            pack=progress.found["pack"] if progress.found else progress.asked.pack,
            digest=progress.found["digest"] if progress.found else None,
            stage=progress.stage if progress.end in ("failed", "left") else None,
            reason=progress.reason,
            error=progress.error,
            missing=progress.missing,
            sources=progress.sources,
            timings=progress.timings(),
            usage=progress.usage,
            cost=cost(progress.usage, *prices),
        )

    async def _events(self, progress: _Progress, retriever: Retriever) -> AsyncGenerator[Event]:
        asked = progress.asked
        with progress.span.stage(RETRIEVAL, {}) as span:
            with span.current():
                found = await retriever.search(_search_request(asked, progress.day, self.settings.passages))
            span.tell({"octavo.passages": len(found["results"])})
        progress.found = found
        reason = cast(Reason | None, found["reason"])
        if reason is None and not has_topic(asked.question):
            reason = "no_relevant_passage"
        if reason is not None:
            yield Event("sources", _sources(found, ()))
            yield Event("done", _refused(progress, found, reason))
            return
        hits = found["results"][:MAX_SOURCES]
        room = self.settings.model.context_tokens - self.settings.model.max_tokens
        authorities = await _authorities(retriever, hits)
        prompt = make_prompt(asked.question, hits, authorities, seed=self._new_seed(), room=room)
        sources = _sources(found, prompt.sources)
        progress.sources = tuple(sources["sources"])
        yield Event("sources", sources)
        progress.stage = "generation"
        progress.markers = Markers(len(prompt.sources))
        ended = Ended(truncated=False, usage=None, model=None)
        async with aclosing(self._generate(progress, prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Ended):
                    ended = piece
                elif piece:
                    yield Event("token", {"text": piece})
        progress.stage = "internal"
        progress.usage = ended.usage
        yield Event("done", await self._done(progress, found, prompt, ended, retriever))

    async def _generate(self, progress: _Progress, prompt: Prompt) -> AsyncGenerator[str | Ended]:
        """What may be shown of the model's words, then how they ended."""
        progress.sent = perf_counter()
        with progress.span.stage(GENERATION, of_request(self.settings.model.name, self._sampling)) as span:
            async with aclosing(self._model.stream(prompt.messages, self._sampling)) as pieces:
                while True:
                    with span.current():
                        piece = await anext(pieces, None)
                    if piece is None:
                        return
                    progress.last = perf_counter()
                    if isinstance(piece, Text):
                        if progress.first is None:
                            progress.first = progress.last
                            span.event(FIRST_TOKEN)
                        yield progress.markers.feed(piece.text)
                    else:
                        span.tell(of_response(piece))
                        yield progress.markers.finish()
                        yield piece

    async def _done(
        self, progress: _Progress, found: SearchResult, prompt: Prompt, ended: Ended, retriever: Retriever
    ) -> Done:
        settings, answer = self.settings.model, progress.answer
        missing = list(found["missing"])
        checked = Checked()
        refused = is_refusal(answer)
        if not refused:
            try:
                checked = await self._workers.run_behind(
                    lambda text: check_answer(text, prompt.sources, retriever), answer
                )
                missing += checked.missing
            except UnavailableError:
                # the answer is there, and says of itself that nobody has checked it
                missing.append("citation_check")
        usage = ended.usage
        return {
            "answer": answer,
            "citations": list(checked.citations),
            "invalid_citations": [{"number": e.number, "position": e.position} for e in progress.markers.invalid],
            "unsupported": list(checked.unsupported),
            "uncited": list(checked.uncited),
            "refused": refused,
            "reason": "not_in_sources" if refused else None,
            "nearest": [],
            "truncated": ended.truncated,
            "missing": missing,
            "usage": None
            if usage is None
            else {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
            "cost_usd": cost(usage, settings.price_in, settings.price_out),
            "timings": progress.timings(),
            "trace_id": progress.trace_id,
            "digest": found["digest"],
            "receipt": receipt_of(prompt, progress.day, self._sampling, ended.model or settings.name, answer),
        }

    def _failed(self, progress: _Progress, said: str) -> Event:
        failure: Failure = {
            "stage": progress.stage,
            "message": said,
            "partial": progress.answer or None,
            "trace_id": progress.trace_id,
        }
        return Event("error", failure)


def has_topic(question: str) -> bool:
    """Whether a word of the question says what it is about. "How are you" has none, and the gate cannot judge it."""
    return any(word not in STOP_WORDS for word, _ in analyse(question, (DEFAULT_LANGUAGE,)).words)


def is_refusal(answer: str) -> bool:
    """Whether an answer is the sentence that the model was told to say, whatever marks and citations are around it."""
    return _plain(answer) == _plain(REFUSAL)


def may_become_refusal(answer: str) -> bool:
    """Whether the beginning of an answer may be that of the sentence: what is shown only once it is not is held so."""
    return _plain(REFUSAL).startswith(_plain(answer))


def _plain(text: str) -> str:
    return _NO_WORDS.sub(" ", _MARKER.sub("", text).lower()).strip()


def _search_request(asked: AskRequest, day: date, passages: int) -> SearchRequest:
    chosen = asked.filters
    return SearchRequest(
        query=asked.question,
        pack=asked.pack,
        max_results=asked.k or passages,
        type=chosen.type,
        tags=chosen.tags,
        path=chosen.path,
        tier=chosen.tier,
        verified_within=chosen.verified_within,
        gate="refuse",
        as_of=day,
    )


async def _authorities(retriever: Retriever, hits: Sequence[Hit]) -> dict[str, Authority]:
    """The bounds of the packs of these hits, by slug."""
    releases = dict.fromkeys((hit["pack"], hit["digest"]) for hit in hits)
    found = {slug: await retriever.authority(slug, digest) for slug, digest in releases}
    return {slug: authority for slug, authority in found.items() if authority is not None}


def _sources(found: SearchResult, shown: Sequence[Shown]) -> Sources:
    return {
        "pack": found["pack"],
        "digest": found["digest"],
        "sources": [_source(n, s) for n, s in enumerate(shown, 1)],
    }


def _source(number: int, shown: Shown) -> Source:
    hit = shown.hit
    return {
        "number": number,
        "pack": hit["pack"],
        "digest": hit["digest"],
        "fragment_id": hit["fragment_id"],
        "id": hit["id"],
        "uri": hit["uri"],
        "title": hit["title"],
        "heading_path": hit["heading_path"],
        "source_file": hit["source_file"],
        "line_range": hit["line_range"],
        "byte_range": hit["byte_range"],
        "span_sha256": hit["span_sha256"],
        "verified_at": hit["verified_at"],
        "verified_age_days": hit["verified_age_days"],
        "age_stale": hit["age_stale"],
        "expired": hit["expired"],
        "expires_at": hit["expires_at"],
        "score": hit["score"],
        "text": shown.text,
        "shown": len(shown.text),
    }


def _refused(progress: _Progress, found: SearchResult, reason: Reason) -> Done:
    """A refusal without a call of the model."""
    return {
        "answer": REFUSAL,
        "citations": [],
        "invalid_citations": [],
        "unsupported": [],
        "uncited": [],
        "refused": True,
        "reason": reason,
        "nearest": found["nearest"],
        "truncated": False,
        "missing": found["missing"],
        "usage": None,
        "cost_usd": None,
        "timings": progress.timings(),
        "trace_id": progress.trace_id,
        "digest": found["digest"],
        "receipt": None,
    }


def _nothing() -> None:
    """For those who hold no slot."""


def _milliseconds(start: float, end: float) -> float:
    return round(1000 * (end - start), 3)
