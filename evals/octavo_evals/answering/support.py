"""How well the citation checker tells a sentence that its passage supports from one that it does not.

A pair is a sentence as a model writes it and the passage that it cites, labelled by a person who read both. It names
the passage by file, section and hash and holds none of its text: a pack that is not in the dist leaves its pairs out,
and a passage that was edited is reported, because nobody knows whether the label still holds.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import yaml

from octavo_artifact.errors import ConfigError, PackError
from octavo_artifact.layout import POINTER
from octavo_artifact.text import heading_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from octavo_serve.catalog import OpenPack
    from octavo_serve.encoder import Encoder

SUPPORTED = "supported"
NEGATIVES = ("other_passage", "number_changed", "negated", "fabricated")
"""Why a passage does not support a sentence: another one does; a number, unit, version or date is not its own; it says
the opposite; it says nothing of the kind."""
KINDS = (SUPPORTED, *NEGATIVES)
SPLITS = ("dev", "test")
"""A checker is developed on `dev` and judged on both."""
DIGITS = 12
"""Of a span's sha256 that a pair has: as many as a fragment id."""


class Verdict(Protocol):
    """What the checker says of a pair; see `octavo_serve.answering.citations.support`."""

    @property
    def supported(self) -> bool:
        """Whether the passage says what the sentence claims."""
        ...

    @property
    def reason(self) -> str | None:
        """Why not."""
        ...

    @property
    def score(self) -> float:
        """From 0 to 1."""
        ...


Encode = Callable[[str], "NDArray[np.float32]"]
"""The unit vector of a text: float32 [dim]."""
Check = Callable[[str, str, Encode | None, str], Verdict]
"""A checker: sentence, passage, encoder, and the passage's title and headings."""


@dataclass(frozen=True, slots=True)
class Place:
    """A passage of a pack."""

    file: str
    """Path inside the pack."""
    section: str
    """Its anchor, as in its fragment id; `opening` before any heading."""
    span: str
    """First digits of its span_sha256 when a person read it."""

    def __str__(self) -> str:
        return f"{self.file}#{self.section}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, the passage that it cites, and what a person says of the two."""

    id: str
    pack: str
    place: Place
    kind: str
    """One of KINDS."""
    split: str
    """What `split_of` says."""
    sentence: str
    supported_by: Place | None = None
    """Of an `other_passage`: the one that does support it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a model gets it."""

    text: str
    """With the header rows of a split table."""
    context: str
    """Its document's title and its headings."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair and what the checker said."""

    pair: Pair
    supported: bool
    reason: str | None
    score: float

    @property
    def right(self) -> bool:
        """Whether the checker says what the person does."""
        return self.supported == (self.pair.kind == SUPPORTED)


@dataclass(frozen=True, slots=True)
class Figures:
    """How well "unsupported" is told, of one kind or of all.

    Of `supported`, `unsupported` counts the false alarms, and there is neither precision nor recall.
    Of a kind of negatives, recall is the share of its pairs that are called unsupported, and precision the share of
    them among what is called unsupported in that kind and in `supported` together; so it depends on how many pairs the
    two have. Of all, recall is that of all negatives, and precision the share of negatives among all such calls.
    """

    pairs: int
    unsupported: int
    """Pairs that were called unsupported."""
    right: int
    """Pairs of which the checker says what the person does."""
    precision: float | None = None
    """None when nothing was called unsupported."""
    recall: float | None = None
    """None when there is no such pair."""


def split_of(identifier: str) -> str:
    """`dev` or `test`, about half and half, by nothing but the id: no pair can be moved to where it does better."""
    return SPLITS[int(hashlib.sha256(identifier.encode()).hexdigest()[0], 16) // 8]


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """The pairs of a YAML file.

    Raises ConfigError when it cannot be read, PackError for the first pair that is wrong.
    """
    try:
        data: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise PackError(f"{path.name}: not UTF-8 at byte {error.start}") from error
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise PackError(f"{path.name}:{mark.line + 1 if mark else 1}: not YAML") from error
    items = cast(dict[str, Any], data).get("pairs") if isinstance(data, dict) else None
    if not isinstance(items, list) or not items:
        raise PackError(f"{path.name}: expected a mapping with a list `pairs`")
    pairs = tuple(_pair(path.name, item) for item in cast(list[Any], items))
    if repeated := sorted(name for name, count in Counter(pair.id for pair in pairs).items() if count > 1):
        raise PackError(f"{path.name}: the id {repeated[0]!r} stands twice")
    return pairs


def _pair(file: str, item: Any) -> Pair:
    fields = _strings(file, item, "a pair")
    name = f"{file}: {fields.get('id', 'a pair')}"
    other = fields.pop("supported_by", None)
    expected = ("id", "pack", "file", "section", "span", "kind", "split", "sentence")
    if wrong := sorted(set(expected) ^ fields.keys()):
        raise PackError(f"{name}: {wrong[0]!r} is {'unknown' if wrong[0] in fields else 'missing'}")
    if other_kind := [field for field, value in fields.items() if not isinstance(value, str)]:
        raise PackError(f"{name}: {other_kind[0]} is no text")
    pair = Pair(
        fields["id"],
        fields["pack"],
        Place(fields["file"], fields["section"], fields["span"]),
        fields["kind"],
        fields["split"],
        " ".join(fields["sentence"].split()),
        None if other is None else _place(name, other),
    )
    if pair.kind not in KINDS:
        raise PackError(f"{name}: kind {pair.kind!r}, expected one of {', '.join(KINDS)}")
    if pair.split != split_of(pair.id):
        raise PackError(f"{name}: split {pair.split!r}, expected {split_of(pair.id)}, which its id decides")
    if (pair.kind == "other_passage") != (pair.supported_by is not None):
        raise PackError(f"{name}: expected `supported_by` of an other_passage, and of no other kind")
    if not pair.sentence:
        raise PackError(f"{name}: an empty sentence")
    return pair


def _place(name: str, item: Any) -> Place:
    fields = _strings(name, item, "`supported_by`")
    if fields.keys() != {"file", "section", "span"} or not all(isinstance(each, str) for each in fields.values()):
        raise PackError(f"{name}: `supported_by` has {', '.join(fields)}; expected file, section, span")
    return Place(**fields)


def _strings(name: str, item: Any, what: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise PackError(f"{name}: {what} is not a mapping")
    return dict(cast(dict[str, Any], item))


def checker() -> Check:
    """The citation checker of the server."""
    from octavo_serve.answering.citations.support import check

    return check


class Packs:
    """The current releases of a dist, opened when a pair asks for them."""

    def __init__(self, dist: Path) -> None:
        """Raises ConfigError for what is no folder."""
        if not dist.is_dir():
            raise ConfigError(f"{dist}: not a folder; expected one that `octavo build --out` filled")
        self._dist = dist
        self._open: dict[str, OpenPack] = {}
        self._encoders: dict[str, Encoder] = {}
        self._passages: dict[tuple[str, str], dict[str, list[tuple[str, Passage]]]] = {}

    def has(self, slug: str) -> bool:
        """Whether the dist has a release of that pack."""
        return (self._dist / slug / POINTER).is_file()

    def encode(self, slug: str) -> Encode:
        """What makes vectors for a pack."""
        return self._opened(slug).index.encoder.encode

    def find(self, slug: str, place: Place) -> Passage | str:
        """A passage, or what is wrong with its name."""
        key = (slug, place.file)
        if key not in self._passages:
            self._passages[key] = self._of_file(*key)
        found = self._passages[key].get(place.section, [])
        if not found:
            return f"{place}: no such passage; it was moved or renamed"
        passages = [passage for span, passage in found if span == place.span]
        if not passages:
            spans = ", ".join(span for span, _ in found)
            return f"{place}: edited since it was read; read both again, then write `span: {spans}`"
        return passages[0]

    def _of_file(self, slug: str, file: str) -> dict[str, list[tuple[str, Passage]]]:
        """The passages of a file by section, with the hashes of their spans."""
        sections: dict[str, list[tuple[str, Passage]]] = {}
        for hit in self._opened(slug).index.lexical.hits_of(file):
            section = hit["fragment_id"].rpartition(":")[0].rpartition("#")[2]
            passage = Passage(hit["text"], heading_line(hit["title"], hit["heading_path"]))
            sections.setdefault(section, []).append((hit["span_sha256"][:DIGITS], passage))
        return sections

    def _opened(self, slug: str) -> OpenPack:
        from octavo_evals.targets import find_release
        from octavo_serve.catalog import open_release

        if slug not in self._open:
            self._open[slug] = open_release(find_release(self._dist, slug, None), self._dist, self._encoders)
        return self._open[slug]


def present(pairs: Sequence[Pair], packs: Packs) -> tuple[list[Pair], Mapping[str, int]]:
    """The pairs whose pack is there, and how many of each other pack are left out.

    Raises PackError that names every pair whose passage cannot be found as it was read, ConfigError when no pack is
    there.
    """
    left_out = Counter(pair.pack for pair in pairs if not packs.has(pair.pack))
    there = [pair for pair in pairs if pair.pack not in left_out]
    if not there:
        raise ConfigError(f"no pair can be judged; expected one of the packs {', '.join(sorted(left_out))} in the dist")
    wrong = [
        f"{pair.id}: {pair.pack}/{found}"
        for pair in there
        for place in (pair.place, pair.supported_by)
        if place is not None and isinstance(found := packs.find(pair.pack, place), str)
    ]
    if wrong:
        raise PackError(
            "\n".join([f"{len(wrong)} passages are not as they were when the pairs were labelled:", *wrong])
        )
    return there, dict(sorted(left_out.items()))


def judge(pairs: Iterable[Pair], packs: Packs, check: Check, *, lexical: bool = False) -> list[Judged]:
    """What a checker says of pairs that are `present`; `lexical` gives it no encoder."""
    judged: list[Judged] = []
    for pair in pairs:
        passage = packs.find(pair.pack, pair.place)
        assert isinstance(passage, Passage)
        encode = None if lexical else packs.encode(pair.pack)
        verdict = check(pair.sentence, passage.text, encode, passage.context)
        judged.append(Judged(pair, verdict.supported, verdict.reason, verdict.score))
    return judged


def figures(judged: Sequence[Judged]) -> Mapping[str, Figures]:
    """By kind, and under `all`, in the order of KINDS."""
    of_kind = {kind: [each for each in judged if each.pair.kind == kind] for kind in KINDS}
    alarms = _called(of_kind[SUPPORTED])
    found = {SUPPORTED: Figures(len(of_kind[SUPPORTED]), alarms, len(of_kind[SUPPORTED]) - alarms)}
    negatives = [each for each in judged if each.pair.kind != SUPPORTED]
    for kind, each in [*((kind, of_kind[kind]) for kind in NEGATIVES), ("all", negatives)]:
        called = _called(each)
        precision, recall = _share(called, called + alarms), _share(called, len(each))
        found[kind] = Figures(len(each), called, called, precision, recall)
    every = found["all"]
    right = sum(each.right for each in judged)
    return {**found, "all": Figures(len(judged), every.unsupported + alarms, right, every.precision, every.recall)}


def _called(judged: Iterable[Judged]) -> int:
    return sum(not each.supported for each in judged)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def table(judged: Sequence[Judged]) -> str:
    """A line a kind: pairs, called unsupported, right, wrong, precision and recall of "unsupported"."""
    lines = [f"{'':<14} {'pairs':>5} {'unsupported':>11} {'right':>5} {'wrong':>5} {'precision':>9} {'recall':>6}"]
    for kind, each in figures(judged).items():
        counts = f"{each.pairs:>5} {each.unsupported:>11} {each.right:>5} {each.pairs - each.right:>5}"
        lines.append(f"{kind:<14} {counts} {_number(each.precision):>9} {_number(each.recall):>6}".rstrip())
    return "\n".join(lines)


def _number(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def wrong_ones(judged: Iterable[Judged]) -> str:
    """A line a pair of which the checker does not say what the person does."""
    return "\n".join(
        f"{each.pair.id} {each.pair.kind}: {_said(each)}, {each.score:.2f}  {each.pair.place}  {each.pair.sentence}"
        for each in judged
        if not each.right
    )


def _said(judged: Judged) -> str:
    return "called supported" if judged.supported else f"called unsupported ({judged.reason})"


def as_json(judged: Sequence[Judged], left_out: Mapping[str, int], *, lexical: bool, wrong: bool) -> dict[str, Any]:
    """The figures as JSON has them."""
    found: dict[str, Any] = {
        "pairs": len(judged),
        "lexical": lexical,
        "left_out": dict(left_out),
        "figures": {kind: asdict(each) for kind, each in figures(judged).items()},
    }
    if wrong:
        found["wrong"] = [
            {**asdict(each.pair), "supported": each.supported, "reason": each.reason, "score": each.score}
            for each in judged
            if not each.right
        ]
    return found
