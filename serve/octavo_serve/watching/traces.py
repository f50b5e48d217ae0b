"""Traces by OpenTelemetry (`octavo[otel]`): a span a request, below it those of answers, and the MCP SDK's own.

Switched on by the standard variables: `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` says where
to. Without them nothing is imported and nobody is called.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from octavo_artifact import __version__
from octavo_serve.watching.redaction import printable, redact

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from octavo_serve.answering.spans import AnswerSpans

    RequestSpans = Callable[[Iterable[tuple[bytes, bytes]], str], AbstractContextManager[Callable[[str, int], None]]]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTER = "opentelemetry.exporter.otlp.proto.http"
_PARENT = (b"traceparent", b"tracestate")
_MAX_ATTRIBUTE = 200

_logger = logging.getLogger(__name__)


def are_traces_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether spans go anywhere: the variables say where, and the extra is installed."""
    named = any(environment.get(name) for name in _ENDPOINTS)
    off = (
        environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none"
    )
    return named and not off and _is_installed()


def start_traces() -> None:
    """Begin to export spans when that is wanted."""
    if not are_traces_wanted():
        if any(os.environ.get(name) for name in _ENDPOINTS) and not _is_installed():
            _logger.warning("OTEL_EXPORTER_OTLP_ENDPOINT is set; traces need: pip install 'octavo[otel]'")
        return
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    class Redaction(SpanProcessor):
        """Takes secrets out of what the MCP SDK puts into a span; a client names tools and prompts as it likes."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            span.update_name(_bounded(span.name))
            for name, value in (span.attributes or {}).items():
                if isinstance(value, str):
                    span.set_attribute(name, _bounded(value))

    # what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes before ours
    ours = {"service.name": "octavo", "service.version": __version__}
    provider = TracerProvider(resource=Resource.create({**ours, **OTELResourceDetector().detect().attributes}))
    provider.add_span_processor(Redaction())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def flush_traces() -> None:
    """Send the spans that wait, for at most two seconds."""
    if are_traces_wanted():
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider):
            provider.force_flush(2000)


def request_spans() -> RequestSpans | None:
    """What makes the spans of HTTP requests; None when they would go nowhere."""
    if not are_traces_wanted():
        return None
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind, get_tracer

    tracer = get_tracer("octavo")

    @contextmanager
    def spanning(headers: Iterable[tuple[bytes, bytes]], method: str) -> Generator[Callable[[str, int], None]]:
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _PARENT}
        # An exception's text may hold anything; the log has it, with the request's id.
        with tracer.start_as_current_span(
            method,
            extract(carrier),
            SpanKind.SERVER,
            {"http.request.method": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def end(route: str, status: int) -> None:
                span.update_name(f"{method} {route}")
                span.set_attributes({"http.route": route, "http.response.status_code": status})

            yield end

    return spanning


def answer_spans() -> AnswerSpans | None:
    """What makes the spans of answers; None when they would go nowhere."""
    if not are_traces_wanted():
        return None
    from opentelemetry.trace import get_tracer

    from octavo_serve.watching.answer_spans import TracedAnswer

    return partial(TracedAnswer, get_tracer("octavo"))


def _is_installed() -> bool:
    try:
        return find_spec(_EXPORTER) is not None and find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _bounded(text: str) -> str:
    return printable(redact(text))[:_MAX_ATTRIBUTE]
