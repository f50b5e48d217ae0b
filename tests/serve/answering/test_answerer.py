"""The way of an answer, over packs and a model that are real except for what the model says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from octavo_artifact.errors import ArtifactError, NotFoundError, RequestError
from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.answerer import Answerer, Event, Outcome, is_refusal
from octavo_serve.answering.model import ChatEndpoint
from octavo_serve.answering.prompt import REFUSAL
from octavo_serve.answering.retriever import InProcess, RetrievalError
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.catalog import Catalog, OpenPack, open_catalog
from octavo_serve.faces import BusyError, UnavailableError, Workers
from octavo_serve.requests import AskRequest, Filters, SearchRequest
from octavo_serve.results import SearchResult
from running import LIGHTHOUSE, octavo
from scripted import CUT, Gate, Reply, Request, Script, Scripted, answer, refusal, scripted

pytestmark = pytest.mark.anyio

TODAY = date(2026, 6, 30)
QUESTION = "How bright is the lamp, in watts?"
UNRELATED = "Which vaccine is given against yellow fever?"
SAID = ("The lamp burns at 1,000", " watts [", "1].")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("answerer")
    done = octavo("build", LIGHTHOUSE, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def catalog(dist: Path) -> Catalog:
    return open_catalog(dist, TODAY)


@pytest.fixture
def workers() -> Generator[Workers]:
    workers = Workers(10)
    yield workers
    workers.close()


class Asking:
    """An answerer, its model and all that became of its answers."""

    def __init__(self, catalog: Catalog, workers: Workers, model: Scripted, **settings: Any) -> None:
        self.model = model
        self.outcomes: list[Outcome] = []
        chosen = ModelSettings(model.url, retries=0, price_in=2.0, price_out=10.0, **settings)
        self.answerer = Answerer(
            ChatEndpoint(chosen, None),
            AnswerSettings(chosen, max_concurrent=1),
            workers,
            today=lambda: TODAY,
            new_seed=lambda: "seed",
            observe=self.outcomes.append,
        )
        self.retriever = InProcess(catalog, workers)

    async def __call__(self, question: str = QUESTION, **asked: Any) -> list[Event]:
        events = self.answerer.events(AskRequest(question=question, **asked), self.retriever, "a-trace")
        async with aclosing(events):
            return [event async for event in events]

    @property
    def outcome(self) -> Outcome:
        (outcome,) = self.outcomes
        return outcome


@pytest.fixture
async def asking(catalog: Catalog, workers: Workers) -> AsyncGenerator[Any]:
    """Makes an `Asking` of a script; its model runs until the test ends."""
    async with AsyncExitStack() as stack:

        def make(script: Script, **settings: Any) -> Asking:
            ask = Asking(catalog, workers, stack.enter_context(scripted(script)), **settings)
            stack.push_async_callback(ask.answerer.close)
            return ask

        yield make


def names(events: Sequence[Event]) -> list[str]:
    return [event.name for event in events]


def prompt(request: Request) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


async def test_an_answer_is_its_sources_its_pieces_and_what_was_checked(asking: Any) -> None:
    ask = asking(answer(*SAID, usage=(900, 12)))
    events = await ask()
    assert names(events) == ["sources", *["token"] * (len(events) - 2), "done"]
    done = events[-1].data
    assert done["answer"] == "The lamp burns at 1,000 watts [1]."
    assert "".join(event.data["text"] for event in events[1:-1]) == done["answer"]
    assert (done["refused"], done["reason"], done["truncated"]) == (False, None, False)
    assert (done["invalid_citations"], done["unsupported"], done["uncited"]) == ([], [], [])
    assert done["usage"] == {"prompt_tokens": 900, "completion_tokens": 12}
    assert done["cost_usd"] == pytest.approx((900 * 2 + 12 * 10) / 1e6)
    assert done["trace_id"] == "a-trace"
    assert done["digest"] == events[0].data["digest"]
    timings = done["timings"]
    assert 0 < timings["retrieval_ms"] < timings["total_ms"]
    assert 0 < timings["ttft_ms"] <= timings["generation_ms"] < timings["total_ms"]
    assert (ask.outcome.end, ask.outcome.pack, ask.outcome.stage) == ("answered", "lighthouse", None)


async def test_the_evidence_of_a_sentence_is_bytes_of_the_file(asking: Any, catalog: Catalog) -> None:
    done = (await asking(answer(*SAID))())[-1].data
    (citation,) = done["citations"]
    assert citation["supported"] is True
    assert done["answer"][slice(*citation["range"])].startswith("The lamp burns")
    evidence = citation["evidence"]
    _, raw = catalog.choose("lighthouse").resource(f"ep://lighthouse/file/{evidence['source_file']}")
    cited = raw[slice(*evidence["byte_range"])]
    assert sha256_hex(cited) == evidence["sha256"]
    assert b"1,000 watts" in cited


async def test_the_model_is_shown_the_sources_by_number_with_title_path_and_age(asking: Any) -> None:
    ask = asking(answer(*SAID))
    events = await ask()
    said = prompt(ask.model.requests[0])
    for source in events[0].data["sources"]:
        assert f"[{source['number']}] {source['title']}" in said
        assert source["text"] in said
    lamp = next(source for source in events[0].data["sources"] if source["title"] == "The lamp")
    assert lamp["age_stale"] is True
    assert "verified 2026-05-20; OVERDUE for verification" in said
    assert QUESTION in said


async def test_the_day_of_a_question_is_the_day_of_its_sources(asking: Any) -> None:
    ask = asking(answer(*SAID))
    events = await ask(as_of=date(2026, 5, 21))
    assert all(source["age_stale"] is not True for source in events[0].data["sources"])
    assert events[-1].data["receipt"]["as_of"] == "2026-05-21"
    assert "OVERDUE" not in prompt(ask.model.requests[0]).partition("SOURCES")[2]


@pytest.mark.parametrize("question", [UNRELATED, "How are you?", "Hello", "   "])
async def test_what_the_pack_does_not_speak_of_is_refused_without_the_model(asking: Any, question: str) -> None:
    ask = asking(answer("must not be asked"))
    events = await ask(question)
    assert names(events) == ["sources", "done"]
    done = events[-1].data
    assert done["refused"] is True
    assert done["reason"] == ("no_relevant_passage" if question.strip() else "empty_query")
    assert done["answer"] == REFUSAL
    assert done["receipt"] is done["usage"] is done["timings"]["ttft_ms"] is None
    assert events[0].data["sources"] == []
    assert ask.model.requests == []
    assert (ask.outcome.end, ask.outcome.reason) == ("refused", done["reason"])


async def test_a_refusal_names_what_was_nearest(asking: Any) -> None:
    done = (await asking(answer())(UNRELATED))[-1].data
    assert 0 < len(done["nearest"]) <= 3


@pytest.mark.parametrize("said", [REFUSAL, f" {REFUSAL.lower()} ", f"**{REFUSAL}** [1]", REFUSAL.rstrip(".")])
async def test_the_sentence_of_refusal_is_a_refusal(asking: Any, said: str) -> None:
    ask = asking(answer(said))
    done = (await ask())[-1].data
    assert (done["refused"], done["reason"]) == (True, "not_in_sources")
    assert (done["citations"], done["unsupported"], done["uncited"]) == ([], [], [])
    assert done["receipt"] is not None
    assert ask.outcome.reason == "not_in_sources"


def test_an_answer_that_begins_with_that_sentence_is_none() -> None:
    assert not is_refusal(f"{REFUSAL} But the lamp burns at 1,000 watts [1].")


async def test_an_answer_of_too_many_tokens_is_truncated(asking: Any) -> None:
    done = (await asking(answer("The lamp burns", finish="length"))())[-1].data
    assert (done["truncated"], done["answer"]) == (True, "The lamp burns")


async def test_numbers_that_point_nowhere_are_left_out_and_told(asking: Any) -> None:
    done = (await asking(answer("The lamp burns at 1,000 watts [1, 9]."))())[-1].data
    assert done["answer"] == "The lamp burns at 1,000 watts [1]."
    assert [each["number"] for each in done["invalid_citations"]] == [9]


async def test_a_sentence_that_its_source_does_not_say_is_told_with_the_one_that_does(asking: Any) -> None:
    ask = asking(cites_another)
    done = (await ask())[-1].data
    (unsupported,) = done["unsupported"]
    assert unsupported["supported_by"] == 1
    assert unsupported["sentence"].startswith("The lamp burns")


def cites_another(request: Request) -> Reply:
    """What the first source says, with the number of the second."""
    assert "[1] The lamp" in prompt(request)
    return answer("The lamp burns at 1,000 watts [2].")


async def test_a_stream_that_breaks_is_an_error_with_what_came_before(asking: Any) -> None:
    ask = asking(answer("The lamp burns", CUT))
    events = await ask()
    assert names(events)[0] == "sources"
    assert names(events)[-1] == "error"
    assert events[-1].data["stage"] == "generation"
    assert events[-1].data["partial"] == "The lamp burns"
    assert ask.model.url not in events[-1].data["message"]
    assert (ask.outcome.end, ask.outcome.stage) == ("failed", "generation")


async def test_a_model_that_refuses_to_answer_is_an_error_without_a_part(asking: Any) -> None:
    events = await asking(refusal(400))()
    assert names(events) == ["sources", "error"]
    assert events[-1].data["partial"] is None


class Failing(InProcess):
    error: Exception

    async def search(self, request: SearchRequest) -> SearchResult:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RetrievalError("the retriever went away"), "the retriever went away"),
        (ArtifactError("/srv/secret is damaged"), "the server failed; its log says why"),
    ],
)
async def test_a_search_that_fails_is_an_error(
    asking: Any, catalog: Catalog, workers: Workers, error: Exception, said: str
) -> None:
    ask = asking(answer())
    ask.retriever = Failing(catalog, workers)
    ask.retriever.error = error
    (event,) = await ask()
    assert (event.name, event.data["stage"], event.data["message"]) == ("error", "retrieval", said)
    assert ask.outcome.end == "failed"


@pytest.mark.parametrize("error", [NotFoundError("pack", "none"), UnavailableError("too slow")])
async def test_what_the_client_can_mend_is_raised_before_the_first_event(
    asking: Any, catalog: Catalog, workers: Workers, error: Exception
) -> None:
    ask = asking(answer())
    ask.retriever = Failing(catalog, workers)
    ask.retriever.error = error
    with pytest.raises(type(error)):
        await ask()


async def test_an_unknown_pack_and_a_question_beyond_the_context_are_the_clients_to_mend(asking: Any) -> None:
    ask = asking(answer(), context_tokens=2048, max_tokens=1024)
    with pytest.raises(NotFoundError):
        await ask(pack="nothing")
    with pytest.raises(RequestError, match="too long for the context"):
        await ask(f"{QUESTION} {'lamp ' * 390}".strip())


async def test_a_check_that_fails_is_an_error_and_no_answer(asking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("octavo_serve.answering.answerer.check_answer", broken)
    event = (await asking(answer(*SAID))())[-1]
    assert (event.name, event.data["stage"]) == ("error", "internal")
    assert event.data["partial"] == "The lamp burns at 1,000 watts [1]."


async def test_an_answer_that_nobody_had_time_to_check_says_so(asking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> None:
        raise UnavailableError("no answer within 10 seconds")

    monkeypatch.setattr("octavo_serve.answering.answerer.check_answer", late)
    done = (await asking(answer(*SAID))())[-1].data
    assert done["missing"] == ["citation_check"]
    assert done["answer"] == "The lamp burns at 1,000 watts [1]."


async def test_where_the_encoder_fails_sentences_are_compared_by_words(
    asking: Any, catalog: Catalog, workers: Workers
) -> None:
    class Unencoded(InProcess):
        def encoder(self, pack: str, digest: str) -> Any:
            def fail(text: str) -> Any:
                raise ArtifactError("the endpoint does not answer")

            return fail

    ask = asking(answer(*SAID))
    ask.retriever = Unencoded(catalog, workers)
    done = (await ask())[-1].data
    assert done["missing"] == ["citation_encoder"]
    assert done["citations"][0]["supported"] is True


async def test_who_leaves_stops_the_model(asking: Any) -> None:
    gate = Gate()
    ask = asking(answer("The lamp", gate, " burns"))
    events = ask.answerer.events(AskRequest(question=QUESTION), ask.retriever, "")
    async for event in events:
        if event.name == "token":
            break
    await events.aclose()
    assert await run_sync(ask.model.left.wait, 5)
    assert await run_sync(ask.model.until, lambda: ask.model.open == 0)
    assert (ask.outcome.end, ask.outcome.stage) == ("left", "generation")


async def test_who_is_cancelled_while_the_model_reads_stops_it(asking: Any) -> None:
    ask = asking(answer(Gate(), "never"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        assert await run_sync(ask.model.until, lambda: ask.model.busy == 1)
        tasks.cancel_scope.cancel()
    assert await run_sync(ask.model.left.wait, 5)
    assert ask.outcome.end == "left"


async def test_slots_are_as_many_as_the_settings_say(asking: Any) -> None:
    ask = asking(answer())
    with ask.answerer.slot():
        assert ask.answerer.in_flight == 1
        with pytest.raises(BusyError), ask.answerer.slot():
            pass
    assert ask.answerer.in_flight == 0
    with ask.answerer.slot():
        pass


@pytest.mark.parametrize("reply", [answer(*SAID), answer("half", CUT)], ids=["done", "error"])
async def test_whoever_has_the_last_event_finds_the_slot_free(asking: Any, reply: Reply) -> None:
    ask = asking(reply)
    taken: list[int] = []
    with ask.answerer.slot() as slot:
        async for _ in ask.answerer.events(AskRequest(question=QUESTION), ask.retriever, "", slot):
            taken.append(ask.answerer.in_flight)
    assert (set(taken[:-1]), taken[-1]) == ({1}, 0)
    assert ask.answerer.in_flight == 0


async def test_a_question_says_how_many_passages_and_which(asking: Any) -> None:
    ask = asking(answer(*SAID))
    assert len((await ask(k=1))[0].data["sources"]) <= 2  # and what it requires
    found = (await ask(filters=Filters(path="station/concepts/lens.md")))[0].data["sources"]
    assert {source["source_file"] for source in found} <= {"station/concepts/lens.md"}


async def test_the_same_question_makes_the_same_prompt_and_receipt(asking: Any) -> None:
    ask = asking(answer(*SAID))
    first, second = [(await ask())[-1].data["receipt"] for _ in range(2)]
    assert first == second
    assert ask.model.requests[0].body == ask.model.requests[1].body


async def test_a_pack_that_flags_what_it_doubts_is_refused_all_the_same(asking: Any, catalog: Catalog) -> None:
    # an operator's or a pack's `gate: flag` is for those who read passages, not for a model
    pack = catalog.choose("lighthouse")
    flagging = Flagging(pack)
    ask = asking(answer("must not be asked"))
    ask.retriever = InProcess(replace(catalog, packs={"lighthouse": flagging}), ask.answerer._workers)
    assert (await ask(UNRELATED))[-1].data["reason"] == "no_relevant_passage"


class Flagging:
    """A pack whose own choice is to flag."""

    def __init__(self, pack: OpenPack) -> None:
        self._pack = pack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pack, name)

    def search(self, request: SearchRequest) -> SearchResult:
        return self._pack.search(request if request.gate else request.model_copy(update={"gate": "flag"}))
