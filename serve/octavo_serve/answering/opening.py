"""An answerer from the settings of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from octavo_serve.answering.answerer import Answerer
from octavo_serve.answering.model import ChatEndpoint
from octavo_serve.answering.outcomes import Observe
from octavo_serve.answering.settings import AnswerSettings, key_of
from octavo_serve.answering.spans import Untraced
from octavo_serve.faces import Workers
from octavo_serve.watching.traces import answer_spans


def open_answerer(
    settings: AnswerSettings,
    workers: Workers,
    environment: Mapping[str, str],
    *,
    today: Callable[[], date],
    observe: Observe,
) -> Answerer:
    """What answers with the model of the settings, which is not asked yet. Raises ConfigError when its key is missing.

    `today` gives the day of questions that name none.
    """
    spans = answer_spans() or Untraced
    key = key_of("model.key_env", settings.model.key_env, environment)
    return Answerer(ChatEndpoint(settings.model, key), settings, workers, today=today, observe=observe, spans=spans)
