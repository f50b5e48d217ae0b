"""The spans of answers by OpenTelemetry; imported only where they go somewhere, see `traces`.

They follow the conventions for generative AI where those have a name, and hold no word of a question, of a source or of
an answer.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry.context import attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from octavo_serve.answering.spans import ANSWER, GENERATION, Attributes, kind_of, outgoing

_propagator = TraceContextTextMapPropagator()


class TracedAnswer:
    """The span of an answer, below the span that is current when it begins."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._span = tracer.start_span(ANSWER)
        # not made current: an answer is a generator, and whoever takes its events would find itself inside of it
        self._context = set_span_in_context(self._span)

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits."""
        return format_trace_id(self._span.get_span_context().trace_id)

    @contextmanager
    def stage(self, name: str, attributes: Attributes) -> Generator[TracedStage]:
        """The span of a stage."""
        kind = SpanKind.CLIENT if name == GENERATION else SpanKind.INTERNAL
        span = self._tracer.start_span(name, self._context, kind, attributes)
        try:
            yield TracedStage(span)
        except Exception as error:
            _fail(span, kind_of(error))
            raise
        finally:
            span.end()

    def end(self, attributes: Attributes, error: str | None) -> None:
        """End it."""
        self._span.set_attributes(attributes)
        if error is not None:
            _fail(self._span, error)
        self._span.end()


class TracedStage:
    """The span of a stage of an answer."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._context = set_span_in_context(span)
        self._headers: dict[str, str] = {}
        _propagator.inject(self._headers, self._context)

    @contextmanager
    def current(self) -> Generator[None]:
        """Requests to others have its `traceparent`, and spans begin below it."""
        headers, context = outgoing.set(self._headers), attach(self._context)
        try:
            yield
        finally:
            detach(context)
            outgoing.reset(headers)

    def event(self, name: str) -> None:
        """Something happens now."""
        self._span.add_event(name)

    def tell(self, attributes: Attributes) -> None:
        """Say more of it."""
        self._span.set_attributes(attributes)


def _fail(span: Span, error: str) -> None:
    span.set_status(Status(StatusCode.ERROR))
    span.set_attribute("error.type", error)
