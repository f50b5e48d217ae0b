"""Answers of a model, measured: in process, over a real socket, by a judge, and by two."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from octavo_artifact.errors import ConfigError, PackError
from octavo_evals.answering.agreement import Agreement, Verdicts, agreement, read_verdicts
from octavo_evals.answering.asking import Asking, check_files, evaluate
from octavo_evals.answering.cases import Case, CaseSet
from octavo_evals.answering.faithfulness import Pair, faithfulness_bytes, judge, passage_of, read_verdict
from octavo_evals.answering.measures import measures_of
from octavo_evals.answering.quoting import NAME, Quotable, Quoting, best, quotable, quote, read_prompt
from octavo_evals.answering.results import (
    AnswerResults,
    Citation,
    Sentence,
    Shown,
    Written,
    answers_bytes,
    parse_answers,
)
from octavo_evals.pages import answers_page
from octavo_evals.targets import Release, open_target
from octavo_serve.answering.model import ChatEndpoint, Ended, Message, Model, Sampling, Text
from octavo_serve.answering.prompt import REFUSAL
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from running import ROOT, octavo
from scripted import Request, answer, refusal, scripted

TODAY = "2026-11-30"
STEPS = Case("steps", "How many steps has the burr grinder?", "fact", ("concepts/grinder.md",), (("eleven steps",),))
PARIS = Case("paris", "What is the capital of France?", "off-topic", refusal=True)
CASES = CaseSet("answers.yaml", "tiny", TODAY, (STEPS, PARIS))


@pytest.fixture(scope="module")
def release(built: Path) -> Release:
    return open_target(built, "tiny", None, None)


def asked(release: Release, model: Model, url: str = "http://127.0.0.1", cases: CaseSet = CASES) -> AnswerResults:
    settings = AnswerSettings(ModelSettings(url, retries=0))
    return evaluate(Asking(release, model, settings, "tested", TODAY), cases)


def over_socket(release: Release, script: Any, cases: CaseSet = CASES) -> AnswerResults:
    with scripted(script) as server:
        endpoint = ChatEndpoint(ModelSettings(server.url, retries=0), None)
        return asked(release, endpoint, server.url, cases)


def quoting(request: Request) -> Any:
    return answer(quote(request.body["messages"]))


# What an answer is worth


def sentence(*numbers: int, supported: bool = True) -> Sentence:
    citations = tuple(Citation(number, supported, 1.0) for number in numbers)
    return Sentence("s", (0, 1), citations, supported if numbers else None, None, None)


SOURCES = (Shown(1, "a#s:0", "a.md", 9), Shown(2, "b#s:0", "b.md", 9))
TWO = Case("two", "q", files=("a.md", "b.md"), facts=(("red",), ("blue", "azure")))
UNANSWERABLE = Case("none", "q", refusal=True)


def written(text: str, *sentences: Sentence, invalid: tuple[int, ...] = ()) -> Written:
    return Written("answered", answer=text, sources=SOURCES, sentences=sentences, invalid=invalid)


@pytest.mark.parametrize(
    ("case", "given", "figures"),
    [
        pytest.param(
            TWO,
            written("red azure", sentence(1), sentence(2)),
            {"fact_recall": 1, "source_recall": 1, "validity": 1, "support": 1, "coverage": 1, "false": 0, "error": 0},
            id="all of it",
        ),
        pytest.param(
            TWO,
            written("red", sentence(1, 2), sentence(1, supported=False), sentence(), sentence(), invalid=(7,)),
            {
                "fact_recall": 0.5,
                "source_recall": 1,
                "validity": 0.75,
                "support": 0.5,
                "coverage": 0.5,
                "false": 0,
                "error": 0,
            },
            id="half of it",
        ),
        pytest.param(
            TWO,
            written("red blue", sentence()),
            {"fact_recall": 1, "source_recall": 0, "validity": 0, "support": 0, "coverage": 0, "false": 0, "error": 0},
            id="nothing cited",
        ),
        pytest.param(
            TWO,
            Written("refused", "not_in_sources", answer="red blue"),
            {"fact_recall": 0, "source_recall": 0, "validity": 0, "support": 0, "coverage": 0, "false": 1, "error": 0},
            id="refused wrongly",
        ),
        pytest.param(
            TWO,
            Written("failed", stage="generation", answer="red blue"),
            {"fact_recall": 0, "source_recall": 0, "validity": 0, "support": 0, "coverage": 0, "false": 1, "error": 1},
            id="failed",
        ),
        pytest.param(UNANSWERABLE, Written("refused"), {"right": 1, "error": 0}, id="refused rightly"),
        pytest.param(UNANSWERABLE, written("red", sentence(1)), {"right": 0, "error": 0}, id="not refused"),
        pytest.param(UNANSWERABLE, Written("failed"), {"right": 0, "error": 1}, id="failed, to be refused"),
    ],
)
def test_an_answer_is_worth(case: Case, given: Written, figures: dict[str, float]) -> None:
    names = {f"citation_{name}": name for name in ("validity", "support", "coverage")}
    names |= {"right_refusal": "right", "false_refusal": "false"}
    assert {names.get(name, name): value for name, value in measures_of(case, given).items()} == figures


# Runs


def test_a_quoted_answer_has_facts_citations_and_support(release: Release) -> None:
    steps, paris = asked(release, Quoting()).answers
    assert "eleven steps" in steps.written.answer
    assert {source.source_file for source in steps.written.sources if source.number in steps.written.cited} >= {
        "concepts/grinder.md"
    }
    assert (steps.measures["fact_recall"], steps.measures["citation_support"]) == (1, 1)
    assert (paris.written.end, paris.written.reason) == ("refused", "no_relevant_passage")
    assert paris.written.prompt_sha256 is None


def test_a_model_behind_a_socket_gives_the_same_as_in_process(release: Release) -> None:
    assert answers_bytes(over_socket(release, quoting)) == answers_bytes(asked(release, Quoting()))


def test_the_same_code_gives_the_same_bytes_one_or_many_at_once(release: Release) -> None:
    cases = replace(CASES, cases=tuple(replace(STEPS, id=f"steps-{n}") for n in range(6)))
    settings = AnswerSettings(ModelSettings("http://127.0.0.1"))
    asking = Asking(release, Quoting(), settings, NAME, TODAY)
    first, second = (answers_bytes(evaluate(asking, cases, concurrent=number)) for number in (1, 6))
    assert first == second
    assert parse_answers(first, "a.json") == evaluate(asking, cases)


def test_an_answer_that_fails_is_kept_and_scores_nothing(release: Release) -> None:
    steps, paris = over_socket(release, refusal(401)).answers
    assert (steps.written.end, steps.written.stage) == ("failed", "generation")
    assert (steps.measures["error"], steps.measures["fact_recall"]) == (1, 0)
    assert paris.measures == {"right_refusal": 1, "error": 0}


def test_an_answer_that_is_cut_is_told(release: Release) -> None:
    steps, _ = over_socket(release, answer("The burr grinder has eleven steps [1].", finish="length")).answers
    assert steps.written.truncated


def test_the_models_refusal_counts_as_one(release: Release) -> None:
    steps, _ = over_socket(release, answer(REFUSAL)).answers
    assert (steps.written.reason, steps.measures["false_refusal"]) == ("not_in_sources", 1)


def test_a_sentence_that_no_source_supports_is_told(release: Release) -> None:
    text = "Elephants migrate across frozen volcanoes every winter [1]."
    steps, _ = over_socket(release, answer(text, usage=(900, 7))).answers
    assert [each.supported for each in steps.written.sentences] == [False]
    assert steps.measures["citation_support"] == 0
    assert (steps.written.prompt_tokens, steps.written.completion_tokens) == (900, 7)


def test_a_case_bounds_its_passages_and_its_documents(release: Release) -> None:
    case = replace(STEPS, filters={"path": "concepts/water.md"}, k=1, question="Is the grinder in need of hard water?")
    one = asked(release, Quoting(), cases=replace(CASES, cases=(case,))).answers[0]
    assert {source.source_file for source in one.written.sources} <= {"concepts/water.md"}


@pytest.mark.slow
def test_the_command_writes_results_that_hold_no_text_of_passages_and_no_time(built: Path, tmp_path: Path) -> None:
    cases, out, times = tmp_path / "answers.yaml", tmp_path / "a.json", tmp_path / "t.json"
    cases.write_text(
        "pack: tiny\ntoday: '2026-11-30'\ncases:\n"
        "- {id: steps, question: 'How many steps has the burr grinder?', facts: [eleven steps]}\n"
    )
    done = octavo("eval", "answers", "run", cases, "--dist", built, "--quoting", "--out", out, "--timings", times)
    assert done.returncode == 0, done.stderr
    assert "fact_recall" in done.stdout
    results = json.loads(out.read_bytes())
    assert (results["kind"], results["format"]) == ("answers", 1)
    assert results["configuration"]["parameters"]["answers"]["model"] == "quoting"
    assert "_ms" not in out.read_text()
    assert json.loads(times.read_bytes())["steps"]["total_ms"] > 0
    shown = octavo("eval", "table", out)
    assert "tiny" in shown.stdout
    checked = octavo("eval", "gate", "check", out, "--cases", cases, "--dist", built)
    assert checked.returncode == 0, checked.stdout
    assert "prompt" in checked.stdout
    mixed = octavo("eval", "gate", "compare", out, ROOT / "evals/octavo/results.json", "--across-releases")
    assert (mixed.returncode, "one kind" in mixed.stderr) == (2, True)


def test_a_case_names_only_files_that_the_pack_has(release: Release) -> None:
    check_files(release, CASES)
    with pytest.raises(PackError, match=r"steps: names gone\.md, which tiny does not have"):
        check_files(release, replace(CASES, cases=(replace(STEPS, files=("gone.md",)),)))


def test_the_page_shows_which_sentences_hold_and_trusts_none_of_them(release: Release) -> None:
    text = "The burr grinder has eleven steps [1]. Elephants & <script>volcanoes</script> migrate every winter [1]."
    page = answers_page([over_socket(release, answer(text))])
    assert "<script>volcanoes" not in page
    assert [page.count(f'class="said{kind}"') for kind in ("", " wrong")] == [1 + 1, 1 + 1], "one, and the legend's"


# The model that quotes


def messages(sources: str, question: str) -> list[Message]:
    content = f"#f BOUNDS\ntea: refuse when: coffee\n{sources}#f QUESTION\n{question}\n#f END"
    return [{"role": "system", "content": "Cite."}, {"role": "user", "content": content}]


TEA = """#f [1] Tea > Black; tiny/tea.md; verified 2026-11-02
# Black tea

Black tea steeps for **four minutes** in boiling water. It keeps for a year, see [[storage|the shelf]].

[2] of the cups were broken.

| tea | time |
|---|---|
| green | two minutes |

```
brew --tea black
```
#f [2] Coffee; tiny/coffee.md
Coffee is ground.
"""


def test_a_prompt_is_read_as_it_was_written() -> None:
    sources, question = read_prompt(messages(TEA, "How long?")[-1]["content"])
    assert [number for number, _ in sources] == [1, 2], "a line in a source that looks like a source is none"
    assert question == "How long?"


def test_what_can_be_quoted_is_prose_items_and_rows() -> None:
    (_, text), *_ = read_prompt(messages(TEA, "?")[-1]["content"])[0]
    assert [each.text for each in quotable(1, text)] == [
        "Black tea steeps for four minutes in boiling water",
        "It keeps for a year, see the shelf",
        "(2) of the cups were broken",
        "green: two minutes",
    ]


def test_the_sentences_with_the_questions_words_are_quoted_and_cited() -> None:
    assert quote(messages(TEA, "How many minutes does black tea steep?")).startswith(
        "Black tea steeps for four minutes in boiling water [1]."
    )


def test_where_nothing_has_enough_of_the_question_it_refuses() -> None:
    assert quote(messages(TEA, "Which bicycles have disc brakes?")) == REFUSAL
    assert quote(messages("", "Which bicycles have disc brakes?")) == REFUSAL


def test_a_question_of_two_parts_is_answered_from_two_sources() -> None:
    sentences = [
        Quotable(1, "Black tea steeps for four minutes", ""),
        Quotable(1, "Black tea is harvested in Assam", ""),
        Quotable(2, "Coffee beans are ground coarsely", ""),
    ]
    chosen = best("How long does black tea steep, and how are coffee beans ground?", sentences)
    assert {each.number for each in chosen} == {1, 2}


# Judges


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("yes", "yes"),
        (" Yes.\n", "yes"),
        ("**NO**", "no"),
        ("", "undecided"),
        ("yes, but", "undecided"),
        ("no no", "undecided"),
        ("maybe", "undecided"),
    ],
)
def test_a_judges_answer_is_read_strictly(text: str, verdict: str) -> None:
    assert read_verdict(text) == verdict


def judged_by(release: Release, results: AnswerResults, script: Callable[[Request], Any] | Any) -> Any:
    with scripted(script) as server:
        endpoint = ChatEndpoint(ModelSettings(server.url, retries=0), None)
        return judge(results, "0" * 64, release.pack, endpoint, "judge"), server.requests


def test_a_judge_is_asked_of_each_sentence_and_each_passage(release: Release) -> None:
    text = "The burr grinder has eleven steps [1]. Elephants migrate in winter [1]. Nothing is cited here."
    results = over_socket(release, answer(text))

    def script(request: Request) -> Any:
        said = request.body["messages"][-1]["content"]
        assert "The burr grinder has eleven steps. A finer step" in said, "the passage is in the question"
        return answer("Yes." if "STATEMENT\nThe burr" in said else "no")

    found, requests = judged_by(release, results, script)
    assert [(each.pair.sentence, each.said) for each in found.pairs] == [(0, "yes"), (1, "no")]
    assert {request.body["temperature"] for request in requests} == {0.0}
    assert found.measures["faithfulness"].mean == 0.5
    # a question that was rightly refused has none
    assert found.measures["faithfulness"].count == 1


def test_a_judge_reads_what_the_model_was_shown(release: Release) -> None:
    # the page on water requires that on the grinder, which is shown whole
    case = replace(STEPS, question="When does hard water need descaling of the boiler?", k=1)
    shown: list[str] = []

    class Watching(Quoting):
        async def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
            shown.extend(text for _, text in read_prompt(messages[-1]["content"])[0])
            async for piece in super().stream(messages, sampling):
                yield piece

    written = asked(release, Watching(), cases=replace(CASES, cases=(case,))).answers[0].written
    assert "concepts/grinder.md" in {source.source_file for source in written.sources}
    for source, text in zip(written.sources, shown, strict=True):
        assert passage_of(source, release.pack).partition("\n")[2].split() == text.partition("\n")[2].split()


def test_what_a_judge_does_not_decide_is_counted(release: Release) -> None:
    results = over_socket(release, answer("The burr grinder has eleven steps [1]. It is a burr grinder [1]."))
    replies = [answer("Well, it depends"), answer("yes")]
    found, _ = judged_by(release, results, replies)
    assert found.counts == {"undecided": 1, "yes": 1}
    assert (found.measures["faithfulness"].mean, found.measures["undecided"].mean) == (0.5, 0.5)


@pytest.mark.slow
def test_two_judges_and_the_servers_check_are_compared(release: Release, built: Path, tmp_path: Path) -> None:
    text = "The burr grinder has eleven steps [1]. Elephants migrate across frozen volcanoes in winter [1]."
    results, first = tmp_path / "a.json", tmp_path / "j1.json"
    results.write_bytes(answers_bytes(over_socket(release, answer(text))))
    with scripted(lambda r: answer("yes" if "eleven" in r.body["messages"][-1]["content"][-200:] else "no")) as server:
        options = ("--dist", built, "--judge-url", server.url, "--judge-model", "strict", "--out", first)
        done = octavo("eval", "answers", "judge", results, *options)
    assert done.returncode == 0, done.stderr
    assert "strict of tested: 1 no, 1 yes" in done.stdout
    said = octavo("eval", "answers", "agree", first, results).stdout
    assert "agreement 1.000, by chance 0.500, kappa 1.000" in said


def test_judges_of_different_answers_are_not_compared(tmp_path: Path) -> None:
    nobody = frozenset[Pair]()
    with pytest.raises(ConfigError, match="different answers"):
        agreement(Verdicts("a", "one", {}, nobody), Verdicts("b", "two", {}, nobody))


@pytest.mark.parametrize(
    ("table", "observed", "expected", "kappa"),
    [
        # Cohen's own form: (po - pe) / (1 - pe); computed by hand
        pytest.param((20, 5, 10, 15), 0.7, 0.5, 0.4, id="the textbook's"),
        pytest.param((45, 15, 25, 15), 0.6, 0.54, 0.06 / 0.46, id="as often yes, little agreement"),
        pytest.param((25, 35, 5, 35), 0.6, 0.46, 0.14 / 0.54, id="the same agreement, other shares"),
        pytest.param((10, 0, 0, 10), 1.0, 0.5, 1.0, id="always"),
        pytest.param((0, 10, 10, 0), 0.0, 0.5, -1.0, id="never"),
        pytest.param((5, 5, 5, 5), 0.5, 0.5, 0.0, id="as chance would"),
        pytest.param((9, 1, 0, 0), 0.9, 0.9, 0.0, id="the first says yes of all"),
        pytest.param((12, 0, 0, 0), 1.0, 1.0, None, id="both say yes of all: chance leaves nothing"),
        pytest.param((0, 0, 0, 12), 1.0, 1.0, None, id="both say no of all"),
        pytest.param((0, 0, 0, 0), None, None, None, id="no pair"),
    ],
)
def test_kappa(table: tuple[int, int, int, int], observed: float, expected: float, kappa: float | None) -> None:
    found = Agreement(*table)
    assert found.observed == (None if observed is None else pytest.approx(observed))
    assert found.expected == (None if expected is None else pytest.approx(expected))
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))


def test_undecided_pairs_are_left_out_and_counted() -> None:
    pairs = [Pair("q", place, 1) for place in range(4)]
    first = Verdicts("a", "one", {pairs[0]: True, pairs[1]: False}, frozenset(pairs[:3]))
    second = Verdicts("a", "two", {pairs[0]: True, pairs[2]: True}, frozenset(pairs))
    found = agreement(first, second)
    assert (found.count, found.both_yes, found.left_out) == (1, 1, 3)


def test_what_a_judge_said_is_read_again(release: Release, tmp_path: Path) -> None:
    results = over_socket(release, answer("The burr grinder has eleven steps [1]."))
    found, _ = judged_by(release, results, answer("yes"))
    path = tmp_path / "j.json"
    path.write_bytes(faithfulness_bytes(found))
    assert read_verdicts(path).decided == {Pair("steps", 0, 1): True}
    path.write_text("{}")
    with pytest.raises(ConfigError):
        read_verdicts(path)
