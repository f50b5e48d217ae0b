"""`octavo eval label`: a person says which files answer each question of a draft; the YAML keeps all else as it is."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from octavo_artifact.errors import ConfigError, PackError
from octavo_serve.commands.arguments import styles

if TYPE_CHECKING:
    from octavo_evals.deep.subject import Subject

SUMMARY = "label the questions of a draft in the terminal"
SHOWN = 9
"""Candidates of a question: one for each key."""
DEPTH = 50
"""Passages among which they are looked for."""
EXCERPT = 200
KEYS = "1-9 choose, best first   Enter accept   n none answers   s skip   b back   q quit"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may answer, with its best passage."""

    path: str
    title: str
    heading_path: tuple[str, ...]
    excerpt: str


@dataclass(frozen=True, slots=True)
class Labels:
    """Where a person is, and what has been said so far."""

    questions: tuple[int, ...]
    """Places in the file of those that had no label at the start."""
    place: int = 0
    """In `questions`; their number at the end."""
    chosen: tuple[int, ...] = ()
    """Candidates of the present question, best first, counted from 0."""
    done: Mapping[int, tuple[int, ...]] | None = None
    """By place in `questions`: the candidates that answer; empty when none does."""
    quit: bool = False

    @property
    def finished(self) -> bool:
        """Whether nothing is to be asked."""
        return self.quit or self.place >= len(self.questions)


def press(labels: Labels, key: str, candidates: int) -> Labels:
    """What a key does; one that means nothing changes nothing."""
    done = dict(labels.done or {})
    if key.isdecimal() and 0 < int(key) <= candidates:
        number = int(key) - 1
        without = tuple(each for each in labels.chosen if each != number)
        return replace(labels, chosen=without if number in labels.chosen else (*labels.chosen, number))
    if key == "\n" and labels.chosen:
        return _at(replace(labels, done=done | {labels.place: labels.chosen}), labels.place + 1)
    if key == "n":
        return _at(replace(labels, done=done | {labels.place: ()}), labels.place + 1)
    if key == "s":
        return _at(labels, labels.place + 1)
    if key == "b":
        return _at(labels, max(0, labels.place - 1))
    return replace(labels, quit=True) if key in ("q", "") else labels


def _at(labels: Labels, place: int) -> Labels:
    """There, with what was chosen there before."""
    return replace(labels, place=place, chosen=(labels.done or {}).get(place, ()))


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `octavo eval label`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="query set in YAML, such as `octavo eval draft` makes")
    parser.add_argument("--dist", type=Path, default=Path("dist"), metavar="DIST", help="folder of releases (dist)")


def run(arguments: Namespace) -> int:
    """Ask until all is labelled or the person quits; every answer is saved at once.

    Raises PackError for a file that is no query set, ConfigError when it cannot be read.
    """
    from octavo_evals.deep.subject import Subject

    document = Document(arguments.file)
    subject = Subject(arguments.dist / document.pack, DEPTH, lambda doing, done, total: None)
    labels = Labels(document.unlabelled())
    with _keys(sys.stdin) as keys:
        while not labels.finished:
            question = labels.questions[labels.place]
            text = document.text(question)
            candidates = list(candidates_of(subject, text))
            _show(labels, text, candidates)
            place, before = labels.place, labels.done
            while not labels.finished and labels.place == place and labels.done is before:
                labels = press(labels, next(keys, ""), len(candidates))
                _show_chosen(labels, place)
            if labels.done is not before and labels.done is not None:
                document.label(question, [candidates[number].path for number in labels.done[place]])
                document.save()
    left = len(document.unlabelled())
    print(f"{len(labels.questions) - left} labelled, {left} left in {arguments.file.name}", file=sys.stderr)
    return 0


def candidates_of(subject: Subject, question: str) -> Iterator[Candidate]:
    """The files whose passages come first, at most SHOWN."""
    from octavo_evals.deep.statements import statements

    by_fragment = {passage.fragment: passage for passage in subject.passages}
    seen: set[str] = set()
    for hit in subject.ask(question):
        if hit.path not in seen and len(seen) < SHOWN:
            seen.add(hit.path)
            passage = by_fragment[hit.fragment]
            said = " ".join(statement.text for statement in statements(passage.text))
            excerpt = said or " ".join(passage.text.split())
            yield Candidate(hit.path, passage.title, passage.heading_path, excerpt[:EXCERPT])


class Document:
    """A query set in YAML that is written back with its comments, its order and its quotes."""

    def __init__(self, path: Path) -> None:
        """Read it. Raises PackError when it is no query set, ConfigError when it cannot be read."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        self._path = path
        self._yaml: Any = YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = 1_000_000
        try:
            text = path.read_text(encoding="utf-8")
            self._data: Any = self._yaml.load(text)
        except OSError as error:
            raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
        except (YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise PackError(f"{path.name}: not YAML in UTF-8") from error
        if not isinstance(self._data, dict) or not isinstance(self._data.get("queries"), list):
            raise PackError(f"{path.name}: expected a mapping with `pack` and a list `queries`")
        if not all(isinstance(item, dict) and isinstance(item.get("query"), str) for item in self._data["queries"]):
            raise PackError(f"{path.name}: expected `query` in each question")
        if not isinstance(self._data.get("pack"), str):
            raise PackError(f"{path.name}: expected `pack`, the slug of a pack")
        if any(line.startswith("  - ") for line in text.splitlines()):
            self._yaml.indent(mapping=2, sequence=4, offset=2)

    @property
    def pack(self) -> str:
        """Slug of the pack that is asked about."""
        return str(self._data["pack"])

    def unlabelled(self) -> tuple[int, ...]:
        """Places of the questions that have no `expected`; an empty list is a label."""
        return tuple(place for place, item in enumerate(self._data["queries"]) if item.get("expected") is None)

    def text(self, place: int) -> str:
        """The question there."""
        return str(self._data["queries"][place]["query"])

    def label(self, place: int, paths: Sequence[str]) -> None:
        """Say which files answer it, best first."""
        from ruamel.yaml.comments import CommentedSeq

        item = self._data["queries"][place]
        expected = CommentedSeq(paths)
        if not paths:
            expected.fa.set_flow_style()
        if "expected" in item:
            item["expected"] = expected
        else:
            # never last: comments on the next question hang on an entry's last key
            item.insert(min([*item].index("query") + 1, len(item) - 1), "expected", expected)

    def save(self) -> None:
        """Write the file, whole or not at all."""
        new = self._path.with_name(f".{self._path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            self._yaml.dump(self._data, file)
        new.replace(self._path)


def _show(labels: Labels, question: str, candidates: Sequence[Candidate]) -> None:
    bold, dim, plain = styles()
    print(f"\n{labels.place + 1} of {len(labels.questions)}  {bold}{_printable(question)}{plain}")
    for number, candidate in enumerate(candidates, start=1):
        path = " > ".join(candidate.heading_path)
        print(f"  {number} {_printable(candidate.title)}  {dim}{_printable(f'{candidate.path}  {path}')}{plain}")
        print(f"    {_printable(candidate.excerpt)}")
    print(f"{dim}{KEYS}{plain}", flush=True)
    _show_chosen(labels, labels.place)


def _show_chosen(labels: Labels, place: int) -> None:
    if labels.place == place and labels.chosen and not labels.quit:
        print(f"  chosen: {' '.join(str(number + 1) for number in labels.chosen)}", flush=True)


@contextmanager
def _keys(stream: TextIO) -> Generator[Iterator[str]]:
    """The keys that a person presses; of a pipe the characters of its lines, each line accepted at its end."""
    if not stream.isatty():
        yield (key for line in stream for key in [*line.strip(), "\n"])
        return
    import termios
    import tty

    descriptor = stream.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield iter(lambda: os.read(descriptor, 1).decode("ascii", "replace").replace("\r", "\n"), "")
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _printable(text: str) -> str:
    """Control characters out: a document must not move the terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in text)
