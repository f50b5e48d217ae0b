"""What the search does not find: documents by their own names, headings as questions, passages by their own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from octavo_artifact.text import Term
from octavo_evals.deep.statements import statements
from octavo_evals.deep.subject import Found, Hit, Passage, Subject
from octavo_evals.questions import is_generic, question

RARE_TERMS = 8
SHOWN = 4
"""Questions of one document that are named."""
_WORD = re.compile(r"[^\W_][\w'’-]*")


def check_titles(subject: Subject) -> Iterator[Found]:
    """Documents that their own title does not bring up, told with what comes instead."""
    pages = [page for page in subject.pages if page.searchable and page.title.strip()]
    answers = subject.ask_all("titles", [page.title for page in pages])
    for page, hits in zip(pages, answers, strict=True):
        if not _has(hits, page.path):
            message = f"{page.title!r} finds {_told(hits)} in the top {subject.top}"
            yield Found(page.path, 0, "deep-title-lost", message)


def check_headings(subject: Subject) -> Iterator[Found]:
    """Documents that some of the questions their title and headings make do not bring up; told once a document."""
    asked = list(_asked(subject))
    answers = subject.ask_all("headings", [query for _, _, query in asked])
    missed: dict[str, list[tuple[int, str]]] = {}
    for (path, line, query), hits in zip(asked, answers, strict=True):
        if not _has(hits, path):
            missed.setdefault(path, []).append((line, query))
    of_document = Counter(path for path, _, _ in asked)
    for path, lost in missed.items():
        shown = ", ".join(f"{query!r} (line {line})" for line, query in lost[:SHOWN])
        more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        asks = f"{len(lost)} of {of_document[path]} questions that its title and headings make"
        message = f"{asks} do not find it in the top {subject.top}: {shown}{more}"
        yield Found(path, lost[0][0], "deep-heading-lost", message)


def _asked(subject: Subject) -> Iterator[tuple[str, int, str]]:
    """Path, line and question of each title and heading of what can be found.

    A heading that several documents have, or that says nothing by itself, is asked with the document's title.
    """
    pages = [page for page in subject.pages if page.searchable]
    common = Counter(title for page in pages for title in {each.title.casefold() for each in page.headings})
    for page in pages:
        for heading in dict.fromkeys(page.headings):
            alone = common[heading.title.casefold()] == 1 and not is_generic(heading.title)
            named = alone or heading.title.casefold() == page.title.casefold()
            yield page.path, heading.line, question(heading.title) if named else f"{page.title}: {heading.title}"


def check_passages(subject: Subject) -> Iterator[Found]:
    """Passages that no query of their own brings up: their headings, their first sentence, their rarest words."""
    weights = Counter(term for passage in subject.passages for term in set(subject.lexical.terms(passage.text)))
    left = [passage for passage in subject.passages if _first_sentence(passage)]
    queries: tuple[tuple[str, Callable[[Passage], str]], ...] = (
        ("passages by headings", _headings),
        ("passages by first sentence", _first_sentence),
        ("passages by rare words", lambda passage: _rare_words(subject, passage, weights)),
    )
    for doing, query_of in queries:
        answers = subject.ask_all(doing, [query_of(passage) for passage in left])
        left = [
            passage
            for passage, hits in zip(left, answers, strict=True)
            if passage.fragment not in {hit.fragment for hit in hits}
        ]
    for passage in left:
        where = " > ".join(passage.heading_path) or passage.title
        message = f"{where!r}: neither its headings, first sentence nor rarest words find it in the top {subject.top}"
        yield Found(passage.path, passage.line, "deep-unreachable", message)


def _has(hits: Sequence[Hit], path: str) -> bool:
    return any(hit.path == path for hit in hits)


def _told(hits: Sequence[Hit]) -> str:
    paths = list(dict.fromkeys(hit.path for hit in hits))
    return ", ".join(paths[:3]) or "nothing"


def _headings(passage: Passage) -> str:
    path = passage.heading_path
    named = [*path] if passage.title in path[:1] else [passage.title, *path]
    return " ".join(named[-3:])


def _first_sentence(passage: Passage) -> str:
    """Empty for a passage without any words of its own (a heading, a comment): nobody looks for it."""
    return next((each.text for each in statements(passage.text) if len(_WORD.findall(each.text)) > 2), "")


def _rare_words(subject: Subject, passage: Passage, weights: Counter[Term]) -> str:
    """The words whose stems the fewest passages have, in their order."""
    words = list(dict.fromkeys(_WORD.findall(passage.text)))
    # a stable sort: of equally rare words the first ones
    rarest = sorted(words, key=lambda word: min((weights[stem] for stem in subject.lexical.terms(word)), default=0))
    kept = frozenset(rarest[:RARE_TERMS])
    return " ".join(word for word in words if word in kept)
