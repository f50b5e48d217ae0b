"""The handbook in packs/octavo is documentation: what it must name, it names."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from fakes import FakeLibrary, FakePack
from octavo_artifact.command import GROUP, Command
from octavo_artifact.literals import literals_of
from octavo_artifact.parameters import DEFAULTS, RANGES, SWITCHED_OFF, Fusion, GateMode, Retrieval, read_retrieval
from octavo_build.findings import CODES
from octavo_build.graph import build_graph
from octavo_build.lint.codes import LINT_CODES
from octavo_build.passages import passages_of
from octavo_build.sources import read
from octavo_serve.answering.answerer import EventName
from octavo_serve.answering.results import (
    AnswerCitation,
    Done,
    Evidence,
    Failure,
    Reason,
    Receipt,
    ReceiptPassage,
    ReceiptSampling,
    Source,
    Sources,
    Stage,
    Timings,
    Token,
    TokenUsage,
    Uncited,
    Unsupported,
    WrongCitation,
)
from octavo_serve.answering.settings import AnswerSettings, ModelSettings, RetrieverSettings
from octavo_serve.answering.stats import AllEnds, Percentiles, Recent, StageTimes, StatsResult, Tokens
from octavo_serve.callers.oauth import OAuthSettings
from octavo_serve.cli import INTERRUPTED
from octavo_serve.commands.answering import ASK, REFUSED
from octavo_serve.commands.asking import SEARCH
from octavo_serve.commands.checking import VERIFY_ANSWER
from octavo_serve.configuration import configure, shown
from octavo_serve.requests import AskRequest, Filters, SearchRequest
from octavo_serve.results import Explanation, Freshness, Hit, SearchResult
from octavo_serve.search import STAGES
from octavo_serve.settings import RerankerSettings, ServerSettings
from octavo_serve.watching.metrics import Metrics
from running import ROOT

HANDBOOK = ROOT / "packs" / "octavo"

RANGE = re.compile(r"(-?[0-9]+) to ([0-9]+)")


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = (HANDBOOK / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = section.partition("\n|---")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def scalars(text: str) -> dict[str, Any]:
    """`name: value` as YAML, scalars as they are written: `off` is not false."""
    return yaml.load(text, Loader=yaml.BaseLoader)


def merged(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One mapping of several."""
    return {name: value for each in mappings for name, value in each.items()}


def code(cell: str) -> list[str]:
    """What a cell has in code."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_handbook_has_no_finding() -> None:
    pack = read(HANDBOOK)
    graph = build_graph(pack.documents)
    cut = [finding for row, document in enumerate(pack.documents) for finding in passages_of(document, row)[1]]
    assert [*pack.findings, *graph.findings, *cut] == []


def test_the_handbook_has_atoms_enough_and_says_when_each_was_verified() -> None:
    atoms = [document for document in read(HANDBOOK).documents if document.searchable]
    assert len(atoms) >= 20
    assert all(atom.verified_at and atom.type and atom.tags and atom.id for atom in atoms)


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_every_finding_code_is_in_the_table_of_its_severity(severity: str) -> None:
    page = (HANDBOOK / "troubleshooting" / "findings-by-code.md").read_text()
    section = page.partition(f"## {severity.capitalize()}s\n")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `([a-z0-9-]+)`", section, re.MULTILINE))
    assert documented == {code for code, (found, _) in CODES.items() if found == severity}


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_every_lint_code_is_in_the_table_of_its_severity(severity: str) -> None:
    page = (HANDBOOK / "troubleshooting" / "lint-codes.md").read_text()
    section = page.partition(f"## {severity.capitalize()}s\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([A-Za-z0-9-]+)` \| (.+) \|$", section, re.MULTILINE))
    assert documented == {code: advice for code, (found, advice) in LINT_CODES.items() if found == severity}


def test_every_command_is_in_the_handbook() -> None:
    text = "\n".join(path.read_text() for path in sorted(HANDBOOK.rglob("*.md")))
    missing = [point.name for point in entry_points(group=GROUP) if f"octavo {point.name}" not in text]
    assert missing == []


def test_every_setting_is_in_the_table_of_keys() -> None:
    page = (HANDBOOK / "workflows" / "configure-the-server.md").read_text()
    section = page.partition("## Every key\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z_]+)`", section, re.MULTILINE) == [field.name for field in fields(ServerSettings)]


def test_every_setting_of_a_reranker_is_in_the_table_of_its_page() -> None:
    page = (HANDBOOK / "workflows" / "rerank.md").read_text()
    section = page.partition("## Every key\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z_]+)`", section, re.MULTILINE) == [field.name for field in fields(RerankerSettings)]


def test_every_setting_of_oauth_is_in_the_table_of_its_page() -> None:
    rows = table("workflows/oauth.md", "Every key")
    assert [code(name)[0] for name, *_ in rows] == [field.name for field in fields(OAuthSettings)]
    written = merged(scalars(f"{code(name)[0]}: {code(default)[0]}") for name, default, _ in rows if code(default))
    required = {"issuer": "https://login.example.org", "resource": "https://kb.example.org"}
    defaults = shown(configure(None, {"OCTAVO_OAUTH": json.dumps(required)}, {}))["oauth"]
    assert {**written, "leeway": int(written["leeway"])} == {name: defaults[name] for name in written}
    assert defaults.keys() - written.keys() == {*required, "jwks_uri", "required_claims"}


def test_every_parameter_of_the_search_is_in_the_table_of_its_page_with_default_and_range() -> None:
    rows = table("concepts/search-parameters.md", "Every parameter")
    assert [code(name) for name, *_ in rows] == [[field.name] for field in fields(Retrieval)]
    defaults = merged(scalars(f"{code(name)[0]}: {code(default)[0]}") for name, default, *_ in rows)
    assert read_retrieval(defaults) == DEFAULTS
    ranges = {code(name)[0]: found.groups() for name, _, written, _ in rows if (found := RANGE.fullmatch(written))}
    assert {name: (float(least), float(most)) for name, (least, most) in ranges.items()} == RANGES


def test_the_choices_of_a_parameter_are_those_in_its_table() -> None:
    choices = {code(row[0])[0]: code(row[2]) for row in table("concepts/search-parameters.md", "Every parameter")}
    assert choices["fusion"] == list(get_args(Fusion))
    assert choices["gate"] == list(get_args(GateMode))


def test_the_parameters_that_are_shown_are_right() -> None:
    shown = re.findall(r"```yaml\n(.*?)```", (HANDBOOK / "concepts" / "search-parameters.md").read_text(), re.DOTALL)
    assert [read_retrieval(scalars(text)["retrieval"]) for text in shown if text] != [DEFAULTS]


def test_every_metric_is_in_a_table() -> None:
    rows = table("workflows/watch-a-server.md", "Metrics") + table(
        "workflows/watch-answers.md", "The metrics of answers"
    )
    named = {name.removesuffix("_total") for row in rows for name in code(row[0])}
    told, _ = Metrics().exposition(FakeLibrary({"pumps": FakePack("pumps")}), "")
    assert named == {re.sub("_total$", "", name) for name in re.findall(r"^# TYPE (\S+)", told.decode(), re.MULTILINE)}


def test_every_figure_of_the_statistics_is_in_the_table_of_its_page() -> None:
    rows = table("workflows/watch-answers.md", "What /stats tells")
    text = "\n".join("|".join(row) for row in rows)
    assert {name for row in rows for name in code(row[0])} >= StatsResult.__annotations__.keys()
    shapes = (AllEnds, Recent, StageTimes, Percentiles, Tokens)
    assert [name for shape in shapes for name in shape.__annotations__ if f"`{name}`" not in text] == []


def test_every_stage_of_the_search_is_in_the_table_of_its_page_in_order() -> None:
    rows = table("concepts/hybrid-search.md", "The stages")
    assert [code(stage) for stage, *_ in rows] == [[stage.__name__] for stage in STAGES]
    written = merged(scalars(each) for *_, switches in rows for each in code(switches))
    # two are told of on the page on how a query is read
    known = merged(SWITCHED_OFF[name] for name in SWITCHED_OFF if name not in ("intents", "typos"))
    assert written.keys() == known.keys()
    wrong = [name for name in known if read_retrieval({name: written[name]}) != read_retrieval({name: known[name]})]
    assert wrong == []


def test_the_literals_that_are_shown_are_literals() -> None:
    page = (HANDBOOK / "concepts" / "query.md").read_text()
    shown = code(page.partition("- **Literals**")[2].partition("\n")[0])
    assert [literals_of(each) for each in shown] == [[each.lower()] for each in shown]
    assert literals_of("IL-6 Wi-Fi 3.5") == []


def test_every_field_of_a_request_is_a_parameter_over_http() -> None:
    spelled = {"query": "q", "max_results": "n"}
    named = [name for row in table("workflows/search-over-http.md", "Search") for name in code(row[0])]
    assert sorted(named) == sorted(spelled.get(name, name) for name in SearchRequest.model_fields)


def test_every_field_of_an_answer_is_in_the_table_of_fields() -> None:
    rows = table("workflows/search-over-http.md", "The answer")
    assert [name for row in rows for name in code(row[0])] == list(SearchResult.__annotations__)


def test_every_field_of_a_hit_is_on_the_page_of_its_provenance() -> None:
    rows = table("concepts/provenance.md", "The fields of a hit")
    named = {name for row in rows for name in code(row[0])}
    assert named == Hit.__annotations__.keys() - {"reconstruction"}  # which has a paragraph of its own


def test_every_field_of_an_explanation_is_in_the_table_of_its_page() -> None:
    rows = table("workflows/explain-a-search.md", "As JSON")
    assert [code(row[0]) for row in rows] == [[name] for name in Explanation.__annotations__]


@pytest.mark.parametrize("command", [SEARCH, ASK, VERIFY_ANSWER], ids=lambda command: command.name)
def test_every_option_of_a_command_is_in_the_handbook(command: Command) -> None:
    parser = ArgumentParser(add_help=False)
    command.add_arguments(parser)
    options = re.findall(r"--[a-z-]+", parser.format_usage())
    text = "\n".join(path.read_text() for path in sorted(HANDBOOK.rglob("*.md")))
    assert [option for option in options if option not in text] == []


@pytest.mark.parametrize(
    ("heading", "settings"),
    [
        ("Keys under answers", AnswerSettings),
        ("Keys under model", ModelSettings),
        ("Keys under retriever", RetrieverSettings),
    ],
)
def test_every_setting_of_answers_is_in_its_table_with_its_default(heading: str, settings: Any) -> None:
    rows = table("workflows/answer-settings.md", heading)
    assert [code(name) for name, *_ in rows] == [[field.name] for field in fields(settings)]
    written = {code(name)[0]: float(code(default)[0]) for name, default, _ in rows if code(default)}
    numbers = {field.name: field.default for field in fields(settings) if isinstance(field.default, int | float)}
    assert written == numbers


def test_every_field_of_a_question_is_in_its_table() -> None:
    rows = {code(row[0])[0]: row for row in table("workflows/answer-questions.md", "Ask over HTTP")}
    assert list(rows) == list(AskRequest.model_fields)
    assert code(rows["filters"][1]) == list(Filters.model_fields)


def test_every_event_of_an_answer_is_in_its_table_with_its_fields() -> None:
    rows = {code(row[0])[0]: row for row in table("workflows/answer-questions.md", "The stream")}
    assert list(rows) == list(get_args(EventName))
    assert code(rows["sources"][1]) == list(Sources.__annotations__)
    assert code(rows["token"][1]) == list(Token.__annotations__)
    assert set(code(rows["error"][1])) == {*Failure.__annotations__, *get_args(Stage)}


def test_every_field_of_an_answer_to_a_question_is_in_its_table() -> None:
    rows = table("workflows/answer-questions.md", "The fields of done")
    assert [name for row in rows for name in code(row[0])] == list(Done.__annotations__)
    told = {code(row[0])[0]: code(row[1]) for row in rows}
    assert set(told["citations"]) == {*AnswerCitation.__annotations__, *Evidence.__annotations__}
    assert told["invalid_citations"] == list(WrongCitation.__annotations__)
    assert told["unsupported"] == list(Unsupported.__annotations__)
    assert told["uncited"] == list(Uncited.__annotations__)
    assert told["refused"] == list(get_args(Reason))
    assert told["usage"] == list(TokenUsage.__annotations__)
    assert told["timings"] == list(Timings.__annotations__)


def test_every_field_of_a_source_is_in_its_table() -> None:
    rows = table("workflows/answer-questions.md", "The fields of a source")
    named = [name for row in rows for name in code(row[0])]
    assert sorted(named) == sorted({**Freshness.__annotations__, **Source.__annotations__})


def test_every_field_of_a_receipt_is_in_its_table() -> None:
    rows = table("workflows/verify-an-answer.md", "The fields of a receipt")
    assert [name for row in rows for name in code(row[0])] == list(Receipt.__annotations__)
    told = {code(row[0])[0]: code(row[1]) for row in rows}
    assert told["passages"] == list(ReceiptPassage.__annotations__)
    assert told["sampling"] == list(ReceiptSampling.__annotations__)


def test_every_exit_code_of_ask_is_in_its_table() -> None:
    rows = table("workflows/answer-questions.md", "Ask in a shell")
    assert [row[0] for row in rows] == ["0", str(REFUSED), "1", "2", str(INTERRUPTED)]


@pytest.mark.parametrize("page", ["answer-questions", "answer-settings", "api-keys", "configure-the-server", "rerank"])
def test_the_configurations_that_are_shown_are_right(page: str, tmp_path: Path) -> None:
    shown = re.findall(r"```yaml\n(.*?)```", (HANDBOOK / "workflows" / f"{page}.md").read_text(), re.DOTALL)
    assert shown
    for text in shown:
        (tmp_path / "octavo.yaml").write_text(text)
        assert configure(tmp_path / "octavo.yaml", {}, {}) != ServerSettings()


def test_related_pages_name_each_other() -> None:
    graph = build_graph(read(HANDBOOK).documents)
    related = {(edge.source, edge.target) for edge in graph.edges if edge.kind == "related"}
    assert {(target, source) for source, target in related} == related
