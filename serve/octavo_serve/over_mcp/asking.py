"""The work of `ep_ask`: an answer as one result, and how far it is while the model writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio

from octavo_artifact.errors import OctavoError
from octavo_serve.answering.results import Answer, Done, Failure, Source
from octavo_serve.faces import UnavailableError
from octavo_serve.over_mcp.endpoint import Endpoint
from octavo_serve.requests import AskRequest
from octavo_serve.watching import notes

if TYPE_CHECKING:
    from octavo_serve.answering.answerer import Answerer

STEP = 200
"""Characters of an answer after which a client is told how many there are."""

Tell = Callable[[float, float | None, str], Awaitable[None]]
"""Told how far it is, of how much if that is known, and in words. Each time it is further."""


class FailedError(OctavoError):
    """There is no answer; the message may be given to clients."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure['stage']}: {failure['message']}; trace {failure['trace_id']}")


async def ask(answerer: Answerer, endpoint: Endpoint, request: AskRequest, tell: Tell) -> Answer:
    """Have the question answered, holding one of the answerer's slots; who cancels this stops the model.

    Raises RequestError for what cannot be asked so, UnavailableError when the same question may be answered later or
    the client does not read what it is told, and FailedError.
    """
    asked = endpoint.narrowed(request)
    note = notes.current.get()
    trace_id = notes.request_id(None) if note is None else note.request_id
    progress = _Progress(tell, answerer.settings.reader_timeout)
    pack: str | None = None
    sources: list[Source] = []
    with answerer.slot() as slot:
        async with aclosing(answerer.events(asked, answerer.retriever(endpoint.view), trace_id, slot)) as events:
            async for event in events:
                data: Any = event.data
                match event.name:
                    case "sources":
                        pack, sources = data["pack"], data["sources"]
                        await progress.found(sources)
                    case "token":
                        await progress.wrote(data["text"])
                    case "error":
                        raise FailedError(data)
                    case "done":
                        done: Done = data
                        answer: Answer = {**done, "pack": pack, "sources": sources}
                        await progress.done(answer)
                        return answer
    raise RuntimeError("an answer ended without an end")


def cited(answer: Answer) -> Sequence[Source]:
    """The sources that the answer cites, in their order, each document once."""
    numbers = {citation["number"] for citation in answer["citations"]}
    return list({source["uri"]: source for source in answer["sources"] if source["number"] in numbers}.values())


class _Progress:
    """Tells a client every so many characters, not every so often: the same answer is told in the same way."""

    def __init__(self, tell: Tell, timeout: float) -> None:
        self._tell = tell
        self._timeout = timeout
        self._written = 0
        self._told = 0

    async def found(self, sources: Sequence[Source]) -> None:
        await self._say(1, None, f"{_counted(len(sources), 'source')}")

    async def wrote(self, text: str) -> None:
        self._written += len(text)
        if self._written - self._told >= STEP:
            self._told = self._written
            await self._say(1 + self._written, None, f"{self._written} characters")

    async def done(self, answer: Answer) -> None:
        end = 2 + self._written
        said = "refused" if answer["refused"] else f"answered with {_counted(len(answer['citations']), 'citation')}"
        await self._say(end, end, said)

    async def _say(self, progress: float, total: float | None, text: str) -> None:
        try:
            with anyio.fail_after(self._timeout):
                await self._tell(progress, total, text)
        except TimeoutError as error:
            raise UnavailableError("the client does not read what it is told") from error


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
