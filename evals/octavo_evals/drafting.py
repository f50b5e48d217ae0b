"""`octavo eval draft`: questions for a person to label, from a release's headings and facts and from a query log."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo_artifact.errors import ConfigError
from octavo_artifact.text import STOP_WORDS, Term

if TYPE_CHECKING:
    from octavo_evals.deep.subject import Page, Subject

SUMMARY = "propose questions about a pack for a person to label"
CANDIDATES = 5
"""Passages whose files are named with a question."""
MAX_LINE = 100_000
"""Characters of a line of the log; a longer one holds no question."""
MAX_QUESTION = 300

SHARES = {"log": 0.4, "unanswerable": 0.2, "fact": 0.15}
"""Part of the questions that each source may fill; headings fill the rest."""

_VALUE = re.compile(r"([^:]{3,60}):\s+\S")
_DEFINITION = re.compile(r"(?:An? |The )?(\w[\w/-]*(?: [\w/-]+){0,3}) (?:is|are) (?:an?|the) ")
_ATTRIBUTE = re.compile(
    r"\b(?:age|amount|capacity|cost|current|cycles?|default|delay|depth|distance|duration|efficiency|height|interval|length|"
    r"life|lifespan|limit|load|maximum|minimum|number|output|power|pressure|price|range|rate|rating|size|speed|"
    r"temperature|thickness|time|value|voltage|warranty|weight|width)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:best|example|lead|mistake|note|option|phase|step|symptom|tip|typical|warning)\b", re.I)
_ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question without a label."""

    text: str
    category: str
    """Where it comes from: `heading`, `fact`, `log`, or `unanswerable` for what the pack seems not to say."""
    source: str
    """The same in words, for the person who labels."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `octavo eval draft`."""
    parser.add_argument("dist", type=Path, metavar="DIST", help="folder of releases")
    parser.add_argument("--pack", required=True, metavar="SLUG", help="pack to ask about")
    parser.add_argument("--log", type=Path, metavar="FILE", help="queries that people asked: JSON lines with `query`")
    parser.add_argument("--n", type=int, default=40, metavar="N", help="questions to propose (40)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to write, which must not exist (stdout)")


def run(arguments: Namespace) -> int:
    """Write the query set. Raises ConfigError for what cannot be read or would be overwritten."""
    from octavo_evals.deep.subject import Subject

    if arguments.n < 1:
        raise ConfigError(f"--n: expected 1 or more, found {arguments.n}")
    if arguments.out and arguments.out.exists():
        raise ConfigError(f"{arguments.out}: exists; a draft does not overwrite labels")
    subject = Subject(arguments.dist / arguments.pack, CANDIDATES, lambda doing, done, total: None)
    log = logged(read_log(arguments.log), subject.slug) if arguments.log else []
    text = query_set(subject, propose(subject, log, arguments.n))
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def propose(subject: Subject, log: Sequence[Draft], n: int) -> list[Draft]:
    """At most `n` questions, each text once: the log's, near misses, facts, and headings for the rest."""
    sources: dict[str, Iterable[Draft]] = {"log": log, "unanswerable": _near_misses(subject), "fact": _facts(subject)}
    taken: dict[str, Draft] = {}
    for category, share in SHARES.items():
        for draft in islice(_new(sources[category], taken), round(n * share)):
            taken[normalised(draft.text)] = draft
    for draft in islice(_new(_headings(subject), taken), n - len(taken)):
        taken[normalised(draft.text)] = draft
    return sorted(taken.values(), key=lambda draft: (draft.category == "unanswerable", draft.category != "log"))


def _new(drafts: Iterable[Draft], taken: dict[str, Draft]) -> Iterator[Draft]:
    for draft in drafts:
        if normalised(draft.text) not in taken:
            yield draft


def _headings(subject: Subject) -> Iterator[Draft]:
    """The first heading below the title of each document, then the second ..., as questions.

    Those that say nothing, or a single word, are left out, and titles: they are found too easily to tell anything.
    """
    from octavo_evals.questions import is_generic, question, topic

    return _by_turns(
        [
            Draft(question(heading.title), "heading", f"the heading {heading.title!r} ({page.path}:{heading.line})")
            for heading in page.headings
            if heading.title != page.title and " " in topic(heading.title) and not is_generic(heading.title)
        ]
        for page in _searchable(subject)
    )


def _facts(subject: Subject) -> Iterator[Draft]:
    """What tables, `key: value` items and definitions say, asked for; by turns of the documents."""
    from octavo_evals.deep.statements import statements

    of_page: dict[str, list[Draft]] = {}
    for passage in subject.passages:
        for statement in statements(passage.text):
            if asked := _asked_for(statement.text):
                place = f"{passage.path}:{passage.line_of(statement.line)}"
                draft = Draft(asked, "fact", f"{statement.text[:100]!r} ({place})")
                of_page.setdefault(passage.path, []).append(draft)
    return _by_turns(of_page[path] for path in sorted(of_page))


def _asked_for(statement: str) -> str | None:
    """The question that a statement answers; None when its form shows none."""
    from octavo_evals.deep.quantities import quantities
    from octavo_evals.questions import is_verb, question

    if found := _DEFINITION.match(statement):
        words = found[1].casefold().split()
        return None if STOP_WORDS & {*words} else question(found[1])
    found = _VALUE.match(statement)
    if not found or is_verb(found[1].partition(" ")[0]) or not any(quantities(statement[found.end(1) :])):
        return None
    row, comma, column = found[1].partition(", ")
    if comma and column:
        return f"What is the {column} of {row}?" if _ATTRIBUTE.search(column) else f"What is the {row} of {column}?"
    words = row.casefold().split()
    named = 2 <= len(words) <= 5 and not STOP_WORDS & {*words} and not _LABEL.match(row)
    return f"What is the {row}?" if named else None


def _near_misses(subject: Subject) -> Iterator[Draft]:
    """An aspect of one document asked of another that never names it: on the topic, and likely without an answer."""
    from octavo_evals.questions import head, is_generic, is_verb, topic

    pages = _searchable(subject)
    aspects = [
        (page.path, topic(heading.title))
        for page in pages
        for heading in page.headings
        if heading.title != page.title and len(topic(heading.title).split()) == 2 and not is_generic(heading.title)
        if not is_verb(topic(heading.title).partition(" ")[0])
    ]
    for number, page in enumerate(pages):
        stems = _stems(subject, page)
        # start elsewhere for each document, so that not all are asked of the same aspect
        start = number * 7 % max(1, len(aspects))
        for path, aspect in aspects[start:] + aspects[:start]:
            if path != page.path and not stems & frozenset(subject.lexical.terms(aspect)):
                source = f"{aspect!r} of {path}, which {page.path} never names; label it `n` if nothing answers"
                yield Draft(
                    f"What about the {_ARTICLE.sub('', aspect)} for {head(page.title)}?", "unanswerable", source
                )
                break


def _stems(subject: Subject, page: Page) -> frozenset[Term]:
    """All of a document's; in pieces, for a query has a limit of terms."""
    words = sorted(set(re.findall(r"\w+", page.text)))
    pieces = (" ".join(words[start : start + 32]) for start in range(0, len(words), 32))
    return frozenset(term for piece in pieces for term in subject.lexical.terms(piece))


def _searchable(subject: Subject) -> list[Page]:
    return [page for page in subject.pages if page.searchable]


def _by_turns(groups: Iterable[Sequence[Draft]]) -> Iterator[Draft]:
    for turn in zip_longest(*groups):
        yield from (draft for draft in turn if draft is not None)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; lines that are none are told on stderr and left out.

    Raises ConfigError when the file cannot be read.
    """
    records: list[dict[str, Any]] = []
    bad = 0
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(MAX_LINE):
                try:
                    record = json.loads(line) if line.strip() else {}
                except (ValueError, RecursionError):
                    record = None
                if isinstance(record, dict):
                    records.append(record)
                else:
                    bad += 1
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    if bad:
        print(f"octavo: {path.name}: {bad} lines are no JSON objects; left out", file=sys.stderr)
    return records


def logged(records: Iterable[dict[str, Any]], slug: str) -> list[Draft]:
    """The queries that were asked of a pack, the most frequent first; the same question in another spelling is one.

    A record without `pack` counts for every pack. Of several spellings the most frequent is kept.
    """
    spellings: dict[str, Counter[str]] = {}
    for record in records:
        query = record.get("query")
        if isinstance(query, str) and record.get("pack") in (None, slug):
            text = " ".join(_printable(query).split())
            if (normal := normalised(text)) and len(text) <= MAX_QUESTION:
                spellings.setdefault(normal, Counter())[text] += 1
    ordered = sorted(spellings.items(), key=lambda item: (-item[1].total(), item[0]))
    return [
        Draft(min(texts, key=lambda text: (-texts[text], text)), "log", f"the log, {texts.total()} times")
        for _, texts in ordered
    ]


def normalised(text: str) -> str:
    """A question without what makes no difference: case, spaces, marks at its end."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" ?!.,;:")


def query_set(subject: Subject, drafts: Sequence[Draft]) -> str:
    """The drafts as YAML. They have no `expected`, so that nothing evaluates them before they are labelled."""
    lines = [
        "# proposed by `octavo eval draft`; `octavo eval label` shows candidates and writes `expected`",
        "# expected: the files that answer, best first; [] when the pack cannot answer",
        f"pack: {subject.slug}",
        "version: 1",
        "queries:",
    ]
    common = frozenset(word for passage in subject.passages for word in re.findall(r"\b[a-z]+\b", passage.text))
    asked = [draft.text if draft.category == "log" else _in_prose(draft.text, common) for draft in drafts]
    answers = subject.ask_all("candidates", asked)
    for number, (draft, text, hits) in enumerate(zip(drafts, asked, answers, strict=True), start=1):
        files = ", ".join(dict.fromkeys(hit.path for hit in hits)) or "none"
        lines += [
            f"# from {_printable(draft.source)}",
            f"# candidates: {_printable(files)}",
            f"- id: {subject.slug}-draft-{number:03}",
            f"  query: {json.dumps(_printable(text), ensure_ascii=False)}",
            f"  category: {draft.category}",
        ]
    return "\n".join(lines) + "\n"


def _in_prose(question: str, common: frozenset[str]) -> str:
    """A question whose words, but the first, are in lower case when the pack writes them so elsewhere."""
    first, *rest = question.split(" ")
    return " ".join([first, *(_lower(word, common) for word in rest)])


def _lower(word: str, common: frozenset[str]) -> str:
    lower = word[:1].lower() + word[1:]
    letters = re.sub(r"[^A-Za-z]+", " ", lower).split()
    return lower if letters and word != "I" and all(part in common for part in letters) else word


def _printable(text: str) -> str:
    """What YAML and a terminal can show of it, on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
