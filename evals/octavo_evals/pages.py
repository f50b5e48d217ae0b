"""Pages for people: one HTML file each that needs no network and no script, and trusts nothing a pack says.

Templates escape every value. A content security policy admits the one script that stands in the page, by its hash, and
no request to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from octavo_artifact.errors import ConfigError
from octavo_evals.answering.facts import contains
from octavo_evals.answering.measures import NAMES as ANSWER_MEASURES
from octavo_evals.answering.results import AnswerResults
from octavo_evals.diff.comparison import Comparison
from octavo_evals.diff.text import DOCUMENT_KINDS, PASSAGE_KINDS, shown, tally
from octavo_evals.report.contents import HEADLINE, PRIMARY, REFUSAL, Series, label
from octavo_evals.results import LOWER_IS_BETTER

MAX_LINE = 4000
"""Characters shown of a piece of a line."""


def diff_page(comparison: Comparison) -> str:
    """The page of `octavo diff --html`."""
    return _render("diff.html", comparison=comparison)


def report_page(series: Sequence[Series]) -> str:
    """The page of `octavo eval report`."""
    named = {name for each in series for name in each.last.measures}
    headline = [name for name in HEADLINE if name in named]
    return _render(
        "report.html",
        series=series,
        headline=headline,
        primary=PRIMARY,
        refusal=REFUSAL,
        lower_is_better=LOWER_IS_BETTER,
    )


def answers_page(runs: Sequence[AnswerResults]) -> str:
    """The page of `octavo eval report` of answers."""
    named = [name for name in ANSWER_MEASURES if any(name in run.measures for run in runs)]
    lower = [name for name in named if name in LOWER_IS_BETTER]
    return _render("answers.html", runs=runs, names=named, lower_is_better=lower, contains=contains)


def write_page(path: Path, page: str) -> None:
    """Write a page to a file. Raises ConfigError when that cannot be."""
    try:
        path.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from error


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader("octavo_evals"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        count=count,
        cut=cut,
        decimals=decimals,
        release=label,
        signed=signed,
        tally=_tally,
        value=partial(shown, width=300),
    )
    script = environment.loader.get_source(environment, "page.js")[0] if environment.loader else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(script=Markup(script), script_sha256=digest, **values)


def count(value: int) -> str:
    """A number with its thousands apart."""
    return f"{value:,}"


def cut(text: str) -> str:
    """Text no longer than MAX_LINE."""
    return text if len(text) <= MAX_LINE else text[:MAX_LINE] + "…"


def decimals(value: float | None, places: int = 3) -> str:
    """A number with that many decimals; a dash when there is none."""
    return "–" if value is None else f"{value:.{places}f}"


def signed(value: float, places: int = 0) -> str:
    """A change, with a true minus; 0 has no sign."""
    text = f"{abs(value):,.{places}f}"
    if not float(text.replace(",", "")):
        return text
    return f"+{text}" if value > 0 else f"−{text}"


def _tally(kinds: Iterable[str]) -> str:
    return tally(Counter(kinds), tuple(dict.fromkeys(DOCUMENT_KINDS + PASSAGE_KINDS)))
