"""Ask every case of a release and a model, in process, and say what was answered and how good it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from octavo_artifact.errors import OctavoError, PackError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_evals.answering.cases import Case, CaseSet, request_of
from octavo_evals.answering.measures import NAMES, measures_of
from octavo_evals.answering.results import Answered, AnswerResults, Citation, Sentence, Shown, Written
from octavo_evals.bootstrap import estimates
from octavo_evals.results import Cases, Configuration
from octavo_evals.retrieval import libraries
from octavo_evals.targets import Release
from octavo_serve.answering.answerer import Answerer
from octavo_serve.answering.model import Model
from octavo_serve.answering.prompt import TEMPLATE_SHA256
from octavo_serve.answering.results import Done, Failure, Source, Timings
from octavo_serve.answering.retriever import InProcess
from octavo_serve.answering.settings import AnswerSettings
from octavo_serve.catalog import Catalog
from octavo_serve.faces import Workers, message

TIMEOUT = 120.0
"""Seconds for a search, and for the check of an answer: an evaluation waits where a server would not."""

Told = Callable[[Answered, Timings | None], None]
"""Told of each answer when it is there; of one that failed without its times."""


def _untold(answered: Answered, timings: Timings | None) -> None:
    """For those who wait for all of them."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who answers."""

    release: Release
    model: Model
    settings: AnswerSettings
    name: str | None
    """What the model is called in the results."""
    today: str
    """Day by which the release tells ages."""


def check_files(release: Release, cases: CaseSet) -> None:
    """Raises PackError when a case names a file that the pack lacks."""
    for case in cases.cases:
        for path in case.files:
            if not release.has(path):
                raise PackError(f"{cases.file}: {case.id}: names {path}, which {release.pack.slug} does not have")


def evaluate(asking: Asking, cases: CaseSet, *, concurrent: int = 1, told: Told = _untold) -> AnswerResults:
    """Ask every case; `concurrent` of them at once, each of them as it would be asked alone."""
    answers = asyncio.run(_ask_all(asking, cases.cases, concurrent, told))
    release = asking.release
    return AnswerResults(
        cases=Cases(cases.file, sha256_hex(canonical_json(list(cases.labels.values()))), len(cases.cases)),
        artifact=release.artifact,
        configuration=Configuration({**release.parameters, "answers": parameters_of(asking.settings, asking.name)}),
        libraries=libraries(),
        date=asking.today,
        measures=estimates([each.measures for each in answers], NAMES),
        categories={
            category: estimates([each.measures for each in answers if each.case.category == category], NAMES)
            for category in sorted({each.case.category for each in answers})
        },
        answers=answers,
    )


def parameters_of(settings: AnswerSettings, name: str | None) -> dict[str, Any]:
    """What decides an answer besides the passages that there are: no address, and nothing about time."""
    model = settings.model
    return {
        "passages": settings.passages,
        "model": name,
        "context_tokens": model.context_tokens,
        "max_tokens": model.max_tokens,
        "temperature": model.temperature,
        "top_p": model.top_p,
        "seed": model.seed,
        "extra": dict(model.extra),
        "template_sha256": TEMPLATE_SHA256,
    }


async def _ask_all(asking: Asking, cases: Sequence[Case], concurrent: int, told: Told) -> tuple[Answered, ...]:
    pack = asking.release.pack
    workers = Workers(TIMEOUT)
    retriever = InProcess(Catalog({pack.slug: pack}, {}), workers)
    slots = asyncio.Semaphore(concurrent)

    async def ask(case: Case) -> Answered:
        async with slots:
            written, timings = await _ask(asking, case, retriever, workers)
        answered = Answered(case, written, measures_of(case, written))
        told(answered, timings)
        return answered

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(case)) for case in cases]
    finally:
        workers.close()
        await asking.model.close()
    return tuple(task.result() for task in tasks)


async def _ask(asking: Asking, case: Case, retriever: InProcess, workers: Workers) -> tuple[Written, Timings | None]:
    # of a server it must be one that nobody can guess; here it must be the same each time
    seed = sha256_hex(f"octavo eval answers {case.id}".encode())[:32]
    day = date.fromisoformat(asking.today)
    answerer = Answerer(asking.model, asking.settings, workers, today=lambda: day, new_seed=lambda: seed)
    sources: Sequence[Source] = ()
    last: Any = None
    try:
        asked = request_of(case, asking.release.pack.slug)
        async with aclosing(answerer.events(asked, retriever, case.id)) as events:
            async for event in events:
                if event.name == "sources":
                    sources = event.data["sources"]
                last = event
    except OctavoError as error:
        # before the first event
        return Written("failed", stage="retrieval", message=message(error)), None
    if last.name == "error":
        return _failed(last.data, sources), None
    return written_of(last.data, sources), cast(Done, last.data)["timings"]


def _failed(failure: Failure, sources: Sequence[Source]) -> Written:
    return Written(
        "failed",
        stage=failure["stage"],
        message=failure["message"],
        answer=failure["partial"] or "",
        sources=_shown(sources),
    )


def written_of(done: Done, sources: Sequence[Source]) -> Written:
    """What stands in the last event of an answer, and in its first."""
    usage, receipt = done["usage"], done["receipt"]
    return Written(
        end="refused" if done["refused"] else "answered",
        reason=done["reason"],
        answer=done["answer"],
        truncated=done["truncated"],
        missing=tuple(done["missing"]),
        sources=_shown(sources),
        sentences=_sentences(done),
        invalid=tuple(each["number"] for each in done["invalid_citations"]),
        prompt_tokens=usage and usage["prompt_tokens"],
        completion_tokens=usage and usage["completion_tokens"],
        prompt_sha256=receipt and receipt["prompt_sha256"],
    )


def _shown(sources: Sequence[Source]) -> tuple[Shown, ...]:
    return tuple(Shown(each["number"], each["fragment_id"], each["source_file"], each["shown"]) for each in sources)


def _sentences(done: Done) -> tuple[Sentence, ...]:
    """The sentences that cite and those that do not, in the order of the answer."""
    wrong: dict[int, Mapping[str, Any]] = {each["range"][0]: each for each in done["unsupported"]}
    texts: dict[tuple[int, int], str] = {}
    citations: dict[tuple[int, int], list[Citation]] = {}
    for each in (*done["citations"], *done["uncited"]):
        start, end = each["range"]
        texts[start, end] = each["sentence"]
        of_sentence = citations.setdefault((start, end), [])
        if "number" in each:
            of_sentence.append(Citation(each["number"], each["supported"], each["score"]))
    return tuple(_sentence(texts[place], place, citations[place], wrong.get(place[0])) for place in sorted(texts))


def _sentence(
    text: str, place: tuple[int, int], citations: Sequence[Citation], wrong: Mapping[str, Any] | None
) -> Sentence:
    return Sentence(
        text=text,
        range=place,
        citations=tuple(citations),
        supported=wrong is None if citations else None,
        reason=wrong["reason"] if wrong else None,
        supported_by=wrong["supported_by"] if wrong else None,
    )
