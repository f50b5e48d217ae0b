"""Measures of an answer. All but `error` and `false_refusal` are better the higher they are.

Of a question that the sources answer:

* `fact_recall`: share of its key facts that the answer has (`facts`).
* `source_recall`: share of the expected files among those that the answer cites.
* `citation_validity`: share of the cited numbers that point to a source.
* `citation_support`: share of the sentences with citations whose sources say so, as the server's own check finds.
* `citation_coverage`: share of the sentences that cite a source.
* `false_refusal`: whether it was refused.

Of one that they do not answer, `right_refusal`: whether it was refused. Of every one, `error`: whether it failed.

Which measures a question has follows from its labels alone, so that it is never dropped: where it was refused, or
nothing is cited, there is nothing good to be said of the citations, and they score 0. One that failed scores 0, and 1
where less is better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_evals.answering.facts import found
from octavo_evals.results import LOWER_IS_BETTER

if TYPE_CHECKING:
    from octavo_evals.answering.cases import Case
    from octavo_evals.answering.results import Written

CITING = ("citation_validity", "citation_support", "citation_coverage")
NAMES = ("fact_recall", "source_recall", *CITING, "right_refusal", "false_refusal", "error")
"""Every measure there is."""


def names_of(case: Case) -> tuple[str, ...]:
    """The measures that a question has."""
    if case.refusal:
        return ("right_refusal", "error")
    facts = ("fact_recall",) if case.facts else ()
    files = ("source_recall",) if case.files else ()
    return (*facts, *files, *CITING, "false_refusal", "error")


def measures_of(case: Case, written: Written) -> dict[str, float]:
    """The figures of one answer, rounded to 6 digits."""
    if written.end == "failed":
        return {name: float(name in LOWER_IS_BETTER) for name in names_of(case)}
    refused = float(written.end == "refused")
    values = {"right_refusal": refused, "false_refusal": refused, "error": 0.0, **_of_citations(written)}
    if case.facts:
        values["fact_recall"] = (1 - refused) * _share(found(written.answer, case.facts).count(True), len(case.facts))
    if case.files:
        cited = {source.source_file for source in written.sources if source.number in written.cited}
        values["source_recall"] = _share(len(cited & {*case.files}), len({*case.files}))
    return {name: round(values[name], 6) for name in names_of(case)}


def _of_citations(written: Written) -> dict[str, float]:
    cited = [sentence for sentence in written.sentences if sentence.citations]
    valid = sum(len(sentence.citations) for sentence in cited)
    return {
        "citation_validity": _share(valid, valid + len(written.invalid)),
        "citation_support": _share(sum(sentence.supported is True for sentence in cited), len(cited)),
        "citation_coverage": _share(len(cited), len(written.sentences)),
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
