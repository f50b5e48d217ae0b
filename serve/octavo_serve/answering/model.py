"""What is asked of a language model, and how: an API of chat completions that streams.

A stream is server-sent events whose data are JSON objects, `chunks`, and at last `[DONE]`. Their form is OpenAI's,
with what others make of it: an answer in one object, an `error` among the chunks, thoughts in a field of their own,
counts of tokens in llama.cpp's `timings`. Nothing of what a server says reaches a client but the answer; its errors are
told to the log by their type and code alone, for some repeat the question, or the key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
from typing_extensions import TypedDict

from octavo_artifact.errors import OctavoError
from octavo_serve.answering.settings import ModelSettings
from octavo_serve.answering.spans import outgoing

MAX_PAUSE = 10.0
"""Seconds between two attempts at most; a server that asks for more is not asked again."""

_FIRST_PAUSE = 0.5
_PASSING = frozenset({408, 425, 429})
"""Statuses, beside those from 500, after which the same request may succeed."""

_TAIL = 2.0
"""Seconds for what comes after the reason to end: the usage and `[DONE]`."""

_AFTER = 0.1
"""Seconds for the end of the body after `[DONE]`; with it the connection can be used again."""

_KEPT = 30.0
"""Seconds for which a connection is kept open."""

_EVENT = 1024 * 1024
_ROOM, _ROOM_PER_TOKEN = 1024 * 1024, 2048
"""Bytes of an answer, with all that JSON adds: a chunk of llama.cpp has some 350 bytes and one token."""

_STREAM, _JSON = "text/event-stream", "application/json"
_DONE = "[DONE]"
_ENDS = ("stop", "eos", "eos_token", "end_turn", "stop_sequence")
_CUT = ("length", "max_tokens")
_TOOLS = ("tool_calls", "function_call", "tool_use")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can hold and UTF-8 cannot."""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_logger = logging.getLogger(__name__)

ComingT = TypeVar("ComingT")


class ModelError(OctavoError):
    """The model gave no answer; the message has no address, no key and none of its words."""


class Message(TypedDict):
    """One of the messages of a prompt."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen, and how many there may be."""

    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were read and written, as the model counts them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer ended as it should."""

    truncated: bool
    """Whether it was cut at `max_tokens`."""
    usage: Usage | None
    model: str | None
    """What the server calls the model."""


class Model(Protocol):
    """A language model."""

    def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
        """The pieces of an answer, then its end. Raises ModelError."""
        ...

    async def warm_up(self) -> None:
        """Have it ready for the first question."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...


class ChatEndpoint:
    """Any server of the OpenAI-compatible `POST chat/completions`: llama.cpp, Ollama, vLLM, or a hosted one.

    Used from one event loop. What is wrong with an answer is always a ModelError, and never a short answer.

    The model has `chunk_timeout` for each piece, and for the first one from when the prompt was sent. Text is a piece,
    and so are thoughts and, from a llama.cpp that is asked for it (`extra: {return_progress: true}`), the news that it
    read more of the prompt; comments and empty pieces are not, which a server can send for ever. The time in which
    whoever asked reads is not counted.
    """

    def __init__(
        self, settings: ModelSettings, key: str | None, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """`pause` waits for so many seconds, between attempts."""
        self._settings = settings
        self._pause = pause
        headers = {"Accept": f"{_STREAM}, {_JSON}", "Accept-Encoding": "identity"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx2.AsyncClient(
            base_url=settings.url,
            headers=headers,
            # kept by nobody: an answer does not depend on those before
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            # all but the connecting is under `_Patience`
            timeout=httpx2.Timeout(None, connect=settings.connect_timeout),
            # no limit, for whoever has to wait is to be told so; there are as many connections as answers
            limits=httpx2.Limits(keepalive_expiry=_KEPT),
            # The key and the question are for this place.
            follow_redirects=False,
            trust_env=not is_loopback(settings.url),
        )

    async def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
        """The pieces of an answer, then its end. Raises ModelError.

        Whoever stops early closes the generator, or is cancelled: the connection is closed then, also while the model
        still reads the prompt. It is asked again, after a pause, as long as nothing was given out.
        """
        body = self._body(messages, sampling)
        attempt = 0
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(body, sampling.max_tokens)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except _PassingError as error:
                pause = error.pause(attempt)
                if begun or attempt >= self._settings.retries or pause > MAX_PAUSE:
                    raise
                _logger.warning("%s; asked again in %g seconds", error, pause)
            attempt += 1
            await self._pause(pause)

    async def warm_up(self) -> None:
        """Ask for one token, so that the weights are loaded and a connection is open. A failure is logged."""
        hello: Message = {"role": "user", "content": "Hello"}
        try:
            async with aclosing(self.stream([hello], Sampling(1, 0.0, 1.0, None))) as pieces:
                async for _ in pieces:
                    pass
        except _SilentError:
            pass  # its one token was a thought
        except ModelError as error:
            _logger.warning("the model is not warm: %s", error)

    async def close(self) -> None:
        """Close the connections that were kept open."""
        await self._client.aclose()

    def _body(self, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
        """The request; what is null in `extra` leaves a field out that the server does not know."""
        extra = self._settings.extra
        fields = {
            "model": self._settings.name,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
        }
        omitted = {name for name, value in extra.items() if value is None}
        return {n: value for n, value in {**extra, **fields}.items() if value is not None and n not in omitted}

    async def _attempt(self, body: Mapping[str, Any], max_tokens: int) -> AsyncGenerator[Text | Ended]:
        reading = _Reading()
        patience = _Patience(self._settings.chunk_timeout)
        limit = _ROOM + _ROOM_PER_TOKEN * max_tokens
        response = await self._send(body, patience)
        try:
            if response.status_code != 200:
                raise await _refused(response)
            async with aclosing(_chunks(response, patience, limit)) as chunks:
                async for chunk in chunks:
                    text, alive = reading.take(chunk)
                    if alive:
                        patience.renew()
                    if text:
                        yield Text(text)
                    if reading.reason is not None:
                        patience.shorten(_TAIL)
        except (TimeoutError, httpx2.TransportError) as error:
            # An answer that has its reason to end is whole; what is missing is the usage.
            if reading.reason is None:
                raise _broken(error, patience) from error
        except httpx2.HTTPError as error:
            raise ModelError("the model's answer cannot be read") from error
        finally:
            await response.aclose()
        yield reading.end()

    async def _send(self, body: Mapping[str, Any], patience: _Patience) -> httpx2.Response:
        """The head of the answer, with its body to come."""
        request = self._client.build_request("POST", "chat/completions", json=body, headers=outgoing.get())
        try:
            return await patience.wait(self._client.send(request, stream=True))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            _logger.warning("the model cannot be reached (%s)", _named(error))
            raise _PassingError("the model cannot be reached") from error
        except (TimeoutError, httpx2.TransportError) as error:
            # a connection that was kept may have ended unseen: that says nothing of the server
            raise _broken(error, patience, at_once=True) from error
        except httpx2.HTTPError as error:
            raise ModelError("the model's answer cannot be read") from error


class _PassingError(ModelError):
    """The same request may succeed later."""

    def __init__(self, message: str, *, after: float = 0.0, at_once: bool = False) -> None:
        """`after` are the seconds that the server asked for; `at_once` says that the first pause may be left out."""
        super().__init__(message)
        self._after = after
        self._at_once = at_once

    def pause(self, attempt: int) -> float:
        """Seconds to wait after an attempt, counted from 0."""
        if self._at_once and attempt == 0:
            return 0.0
        return max(self._after, min(_FIRST_PAUSE * 2**attempt, MAX_PAUSE))


class _SilentError(ModelError):
    """The answer ended as it should, and has no text."""


class _Patience:
    """How long the model may still take for its next piece; only the time in which it is waited for counts."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds

    def renew(self) -> None:
        """A piece came."""
        self._left = self.seconds

    def shorten(self, seconds: float) -> None:
        """No more than so long from now on."""
        self._left = min(self._left, seconds)

    async def wait(self, coming: Awaitable[ComingT]) -> ComingT:
        """What comes; raises TimeoutError, and what `coming` raises."""
        clock = asyncio.get_running_loop().time
        start = clock()
        try:
            async with asyncio.timeout(self._left):
                return await coming
        finally:
            self._left -= clock() - start


async def _chunks(response: httpx2.Response, patience: _Patience, limit: int) -> AsyncGenerator[str]:
    """The data of the events of a stream, `[DONE]` included, or a body that is no stream as a whole."""
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ModelError("the model's answer is compressed, expected it as it is")
    if response.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _STREAM:
        yield (await patience.wait(_read(response, limit))).decode("utf-8", "replace")
        return
    response.encoding = "utf-8"
    source = cast(AsyncGenerator[httpx2.ServerSentEvent], aiter(httpx2.EventSource(response, _EVENT)))
    async with aclosing(source) as events:
        while (event := await _next(events, patience)) is not None:
            if response.num_bytes_downloaded > limit:
                raise ModelError(f"the model's answer has more than {limit} bytes")
            if event.event == "error":
                raise _told(event.data)
            if event.data.strip() == _DONE:
                yield _DONE
                with suppress(TimeoutError, httpx2.HTTPError):
                    async with asyncio.timeout(_AFTER):
                        async for _ in events:
                            pass
                return
            if event.data:
                yield event.data


async def _next(events: AsyncGenerator[httpx2.ServerSentEvent], patience: _Patience) -> httpx2.ServerSentEvent | None:
    """The next event; None at the end of the stream."""
    try:
        return await patience.wait(anext(events, None))
    except httpx2.SSEError as error:
        raise ModelError(f"the model sent an event of more than {_EVENT} bytes") from error


async def _read(response: httpx2.Response, limit: int) -> bytes:
    content = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            content += part
            if len(content) > limit:
                raise ModelError(f"the model's answer has more than {limit} bytes")
    return bytes(content)


@dataclass(slots=True)
class _Reading:
    """What was read of an answer so far."""

    wrote: bool = False
    """Whether there was text, and not of spaces only."""
    reason: str | None = None
    """Why it ended, if it did."""
    done: bool = False
    usage: Usage | None = None
    model: str | None = None
    processed: int = 0
    """Tokens of the prompt that llama.cpp has read."""

    def take(self, data: str) -> tuple[str, bool]:
        """The text in a chunk, and whether the chunk shows that the model lives. Raises ModelError."""
        if data == _DONE:
            self.done = True
            return "", True
        chunk = _object(_parsed(data))
        if chunk.get("error"):
            raise _told(data)
        if isinstance(model := chunk.get("model"), str):
            self.model = _SURROGATE.sub("\ufffd", _without_folder(model))
        self.usage = _usage(chunk) or self.usage
        choices = chunk.get("choices") or []
        if not isinstance(choices, list):
            raise _strange()
        choice = _object(cast(list[Any], choices)[0]) if choices else {}
        # an answer that is not streamed has its text in `message`
        delta = _object(choice.get("delta") or choice.get("message") or {})
        text = delta.get("content") or ""
        if not isinstance(text, str):
            raise _strange()
        reason = _known(choice.get("finish_reason") or None)
        self.reason = reason or self.reason
        if delta.get("tool_calls") or delta.get("function_call"):
            raise ModelError("the model called a tool, expected an answer in text")
        self.wrote = self.wrote or bool(text.strip())
        thought = any(delta.get(name) for name in _THOUGHTS)
        return _SURROGATE.sub("\ufffd", text), bool(text or thought or reason or self._reads_on(chunk))

    def _reads_on(self, chunk: Mapping[str, Any]) -> bool:
        progress = chunk.get("prompt_progress")
        processed = progress.get("processed") if isinstance(progress, dict) else None
        before, self.processed = self.processed, max(self.processed, _count(processed) or 0)
        return self.processed > before

    def end(self) -> Ended:
        """How the answer ended, when nothing more comes. Raises ModelError."""
        if self.reason is None and not self.done:
            raise ModelError("the model's answer broke off")
        if not self.wrote and self.reason in _CUT:
            raise _SilentError("the model used all its tokens before it wrote an answer")
        if not self.wrote:
            raise _SilentError("the model's answer is empty")
        return Ended(self.reason in _CUT, self.usage, self.model)


def _strange() -> ModelError:
    return ModelError("the model sent what is no part of a chat completion")


def _known(reason: Any) -> str | None:
    """A reason for which an answer may end."""
    if reason is None or reason in _ENDS + _CUT:
        return reason
    if reason in _TOOLS:
        raise ModelError("the model called a tool, expected an answer in text")
    if reason == "content_filter":
        raise ModelError("the model's content filter stopped the answer")
    raise ModelError("the model's answer ended for a reason that is not known")


def _parsed(data: str | bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError("the model sent what is no JSON") from error


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _strange()
    return cast(dict[str, Any], value)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _usage(chunk: Mapping[str, Any]) -> Usage | None:
    """The tokens that a chunk tells of; llama.cpp's `timings` count what it had cached apart."""
    usage, timings = chunk.get("usage"), chunk.get("timings")
    told: tuple[Any, ...] = (None, None)
    if isinstance(usage, dict):
        told = usage.get("prompt_tokens"), usage.get("completion_tokens")
    elif isinstance(timings, dict):
        read = _count(timings.get("prompt_n"))
        told = None if read is None else read + (_count(timings.get("cache_n")) or 0), timings.get("predicted_n")
    prompt, completion = map(_count, told)
    return None if prompt is None or completion is None else Usage(prompt, completion)


def _without_folder(model: str) -> str:
    """The name of a model, which for llama.cpp may be a path; where the file lies is nobody's business."""
    path = model.startswith(("/", "~", ".")) or model[1:3] == ":\\"
    return re.split(r"[/\\]", model)[-1][:200] if path else model[:200]


def _told(data: str) -> ModelError:
    """For an error among the chunks."""
    _logger.warning("the model reported an error while it wrote%s", _codes(data))
    return ModelError("the model reported an error while it wrote")


async def _refused(response: httpx2.Response) -> ModelError:
    """For an answer with another status than 200."""
    status, content = response.status_code, b""
    with suppress(TimeoutError, httpx2.HTTPError, ModelError):
        async with asyncio.timeout(_TAIL):
            content = await _read(response, _ROOM)
    _logger.warning("the model answered with status %d%s", status, _codes(content))
    message = f"the model answered with status {status}"
    if status not in _PASSING and status < 500:
        return ModelError(message)
    # the other form, a date, would need a clock that both sides share
    after = response.headers.get("Retry-After", "")
    return _PassingError(message, after=float(after) if after.isascii() and after.isdecimal() else 0.0)


def _codes(content: str | bytes) -> str:
    """The type and code of an error, for the log."""
    try:
        error = _object(_object(_parsed(content)).get("error"))
    except ModelError:
        return ""
    codes = [str(error.get(name)) for name in ("type", "code") if error.get(name)]
    return "".join(f", {code}" for code in codes if _CODE.fullmatch(code))


def _broken(error: Exception, patience: _Patience, *, at_once: bool = False) -> ModelError:
    """For an answer whose rest does not come."""
    if isinstance(error, TimeoutError):
        return ModelError(f"the model sent nothing for {patience.seconds:g} seconds")
    _logger.warning("the connection to the model broke (%s)", _named(error))
    return _PassingError("the connection to the model broke", at_once=at_once)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]!r}"


def is_loopback(url: str) -> bool:
    """Whether an address is of this machine, for which no proxy of the environment is meant."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def cost(usage: Usage | None, price_in: float | None, price_out: float | None) -> float | None:
    """What an answer cost, in the currency of the prices of a million tokens; None unless all three are known."""
    if usage is None or price_in is None or price_out is None:
        return None
    return (usage.prompt_tokens * price_in + usage.completion_tokens * price_out) / 1e6
