"""An answerer from the settings of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime

from octavo_serve.answering.answerer import Answerer
from octavo_serve.answering.mcp_retriever import McpEndpoint
from octavo_serve.answering.model import ChatEndpoint
from octavo_serve.answering.outcomes import Observe
from octavo_serve.answering.settings import AnswerSettings, key_of
from octavo_serve.answering.spans import Untraced
from octavo_serve.faces import Library, Workers
from octavo_serve.releases import current
from octavo_serve.watching.traces import answer_spans


def open_answerer(
    settings: AnswerSettings,
    workers: Workers,
    environment: Mapping[str, str],
    *,
    today: Callable[[], date],
    observe: Observe,
) -> Answerer:
    """What answers with the model of the settings, from the passages of `workers` or of the retriever that they name.

    Nobody is asked yet. `today` gives the day of questions that name none. Raises ConfigError when a key is missing.
    """
    spans = answer_spans() or Untraced
    key = key_of("model.key_env", settings.model.key_env, environment)
    endpoint = None
    if (remote := settings.retriever) is not None:
        endpoint = McpEndpoint(remote, key_of("retriever.key_env", remote.key_env, environment), workers.timeout)
    return Answerer(
        ChatEndpoint(settings.model, key),
        settings,
        workers,
        today=today,
        observe=observe,
        retriever_of=endpoint.retriever if endpoint else None,
        connection=endpoint,
        spans=spans,
    )


def day_of(library: Library) -> date:
    """The day by which the packs of a library tell ages, all of them by the same."""
    pack = next(iter(current(library).packs.values()), None)
    return pack.day() if pack else datetime.now(UTC).date()
