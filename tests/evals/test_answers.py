"""The gate over answers from the handbook: what it must catch, and what it must let pass."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence

import pytest

from octavo_evals.answering.asking import Asking, evaluate
from octavo_evals.answering.cases import read_cases
from octavo_evals.answering.quoting import NAME, Quoting, quote
from octavo_evals.answering.results import AnswerResults, answers_bytes, read_answers
from octavo_evals.judge import Verdict, check, compare, judged, read_floors
from octavo_evals.targets import Release, open_target
from octavo_serve.answering.model import Ended, Message, Model, Sampling, Text
from octavo_serve.answering.prompt import REFUSAL
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.catalog import OpenPack
from octavo_serve.encoder import Vector
from running import ROOT, octavo

FOLDER = ROOT / "evals/octavo"
CASES = read_cases(FOLDER / "answers.yaml")
FLOORS = read_floors(FOLDER / "answers.floors.yaml")
TODAY = "2026-11-30"


@pytest.mark.parametrize("committed", sorted(path.name for path in FOLDER.glob("answers.*.json")))
def test_the_committed_answers_are_of_these_cases_and_clear_their_floors(committed: str) -> None:
    own = (FOLDER / committed).with_suffix(".floors.yaml")
    floors = read_floors(own) if own.exists() else FLOORS
    assert failed(check(read_answers(FOLDER / committed), CASES, None, floors)) == set()


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Release:
    root = tmp_path_factory.mktemp("handbook")
    done = octavo("build", ROOT / "packs/octavo", "--out", root / "dist", "--state", root / "state", "-q", timeout=600)
    assert done.returncode == 0, done.stderr
    return open_target(root / "dist", "octavo", None, None)


@pytest.fixture(autouse=True)
def vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of citations asks for the same vectors in every run: they are computed once."""
    known: dict[str, Vector] = {}
    encode = OpenPack.encode

    def remembered(pack: OpenPack, text: str) -> Vector:
        if text not in known:
            known[text] = encode(pack, text)
        return known[text]

    monkeypatch.setattr(OpenPack, "encode", remembered)


def answered(release: Release, model: Model | None = None, passages: int = 5) -> AnswerResults:
    settings = AnswerSettings(ModelSettings("http://127.0.0.1"), passages=passages)
    return evaluate(Asking(release, model or Quoting(), settings, NAME, TODAY), CASES)


def failed(verdicts: Sequence[Verdict]) -> set[str]:
    return {verdict.subject for verdict in verdicts if not verdict.passed}


def regressed(base: AnswerResults, new: AnswerResults) -> set[str]:
    return failed(judged(compare(base, new)))


def too_low(results: AnswerResults) -> set[str]:
    return failed(check(results, CASES, None, FLOORS))


@pytest.fixture(scope="module")
def base(handbook: Release) -> AnswerResults:
    return answered(handbook)


class Altered(Quoting):
    """Says what becomes of what the quoting model says."""

    def __init__(self, alter: Callable[[str], str]) -> None:
        self._alter = alter

    async def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
        yield Text(self._alter(quote(messages)))
        yield Ended(truncated=False, usage=None, model=NAME)


def citing_the_next(answer: str) -> str:
    return re.sub(r"\[([0-9]+)\]", lambda found: f"[{int(found[1]) + 1}]", answer)


def citing_nothing(answer: str) -> str:
    return re.sub(r" \[[0-9]+\]", "", answer)


def refusing(answer: str) -> str:
    return REFUSAL


def answering(answer: str) -> str:
    return answer.replace(REFUSAL, "Yes, it does.")


@pytest.mark.slow
def test_a_rerun_of_the_same_code_gives_the_same_bytes_every_time(handbook: Release, base: AnswerResults) -> None:
    runs = [answered(handbook) for _ in range(20)]
    assert {answers_bytes(run) for run in runs} == {answers_bytes(base)}
    assert [regressed(base, run) for run in runs] == [set()] * 20


@pytest.mark.slow
def test_quotations_clear_the_floors(base: AnswerResults) -> None:
    assert too_low(base) == set()


@pytest.mark.slow
def test_context_cut_to_one_passage_is_caught(handbook: Release, base: AnswerResults) -> None:
    cut = answered(handbook, passages=1)
    assert {"source_recall"} <= regressed(base, cut)
    assert {"fact_recall", "source_recall", "false_refusal"} <= too_low(cut)
    assert not {"right_refusal", "error"} & (regressed(base, cut) | too_low(cut))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alter", "measures"),
    [
        pytest.param(citing_the_next, {"citation_support", "source_recall"}, id="the next source is cited"),
        pytest.param(citing_nothing, {"citation_coverage", "citation_support", "source_recall"}, id="nothing is cited"),
        pytest.param(refusing, {"false_refusal", "fact_recall"}, id="all is refused"),
        pytest.param(answering, {"right_refusal"}, id="nothing is refused"),
    ],
)
def test_a_worse_model_is_caught(
    handbook: Release, base: AnswerResults, alter: Callable[[str], str], measures: set[str]
) -> None:
    worse = answered(handbook, Altered(alter))
    assert measures <= regressed(base, worse) | too_low(worse)
