"""Whether a passage says the opposite of a sentence: negations and opposites, as signs of what is spoken of.

Each word speaks for itself, and for or against an idea if it is one of a pair of opposites: `delete` and `remove` speak
against what `keep` speaks for. A negation turns the sign of the word that it is about: `is never removed` speaks for
keeping. A sentence is contradicted when it speaks for something and the passage, where it is most about the same,
only against it, or the other way round.

`before` and `after`, and comparisons with `than`, turn round with their sides: `A before B` is `B after A`.

The words are English ones: in other languages nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from octavo_artifact.text import DEFAULT_LANGUAGE, LATIN, STOP_WORDS
from octavo_serve.answering.citations.quantities import NUMBER_WORDS
from octavo_serve.answering.citations.words import FUNCTION_WORDS, Word, common
from octavo_serve.lexical import stem

_NEGATIONS = frozenset(
    "not no never none nobody nothing nowhere neither nor without cannot hardly barely rarely except zero".split()
)
_REACH_OVER = frozenset(
    "a an any anything all also always and are be been being both can could did do does either ever even every had has"
    " get gets getting got have having is it its longer many may might much must need only or our she should some such"
    " the their them there these they this those to very was we were will would yet you your".split()
)
"""Words between a negation and the word that it is about."""
_SKIPPED = re.compile(r"\d+|\w{3,}ly")
"""So are figures, and adverbs."""
_BREAKS = frozenset(
    "although because but if since so that than then though unless when where whereas which while who".split()
)
"""Words that a negation does not reach over."""
_MADE_NONE = frozenset("but just merely only simply".split())
_COMPARING = frozenset("earlier fewer later less more".split())
"""Words behind a negation that make it none: `not only`, and with `than` a bound, `no more than`."""
_OF_SUBJECTS = frozenset(("neither", "no"))
_AUXILIARIES = frozenset(
    "are be been can could did do does had has have is may might must need needs should was were will would".split()
)
"""Verbs behind a subject: in `no device has to be paired` the negation is about the pairing."""

_ADVICE = frozenset(("use", "uses", "using"))
"""`Don't use it` advises, and a passage may advise against it in any words."""
_PREDICATES = FUNCTION_WORDS - STOP_WORDS - _NEGATIONS - _REACH_OVER - _BREAKS - _ADVICE
"""Words that say too little to be looked for, but can be negated: `is not used`."""

_SIDED = frozenset("above after before below".split())
_THAN = 3
"""Words behind a comparative among which `than` may stand."""
_ALONE = 1
"""Stems up to which what is around a word cannot be expected to be shared: `Nothing is downloaded.`"""
_BOUND = 8
"""Words behind a negation among which `than` makes a bound of it."""
_LISTED = 6
"""Words that a list behind a negation has."""
_NEARLY = 0.5
"""Likeness by which a part may be less about the same and still count."""
_SIDE = 12
"""Words of a side that are compared: with it the time is linear."""
_PREFIXES = ("non", "un")
_BASE = 5
"""Letters that a word without such a prefix has at least."""

_PHRASES = {
    **{(word, "out"): "omit" for word in ("leave", "leaves", "leaving", "left")},
    **{(word, "on"): "enabled" for word in ("switch", "switched", "turn", "turned", "turns")},
    ("by", "hand"): "manually",
    ("along", "with"): "including",
}
"""Two words that speak of an idea only together."""

_OPPOSITES = """
keep keeps kept stay remain retain preserve survive persist : delete remove drop discard erase lose lost vanish
keep : disappear forget purge wipe destroy
allow permit accept admit tolerate allowed possible : forbid forbidden prohibit prevent refuse reject deny
allow : block disallow ban decline impossible
enable enabled activate : disable disabled deactivate off
increase raise grow rise : decrease reduce shrink diminish lessen
create cause produce introduce generate : prevent avoid eliminate suppress reduce
fast quick quickly rapid faster fastest quicker : slow slowly slower slowest
better best improve : worse worst worsen degrade
cheap cheaper inexpensive : expensive costly
require required need needs needed must mandatory necessary obligatory compulsory : optional unnecessary voluntary
before : after
trust believe believed respect honour honor obey heed : ignore distrust disregard disbelieve
show shown display visible : hide hidden invisible
include including contain add added : exclude omit omitted lack
automatic automatically auto : manual manually
same equal identical exactly exact : different differ distinct
first : last
higher : lower
longer : shorter
larger bigger : smaller
largest biggest : smallest
newer newest new : older oldest old
more : less fewer
most : least
strong stronger : weak weaker
easy simple easier simpler : difficult complex hard harder
open opened : close closed shut
start begin : stop end finish
succeed work works worked run runs pass : fail failed break broken crash error
true : false
valid : invalid
active : passive inactive
static : dynamic
parallel : sequential serial
public : private
local : remote
online : offline
minimum min minimal : maximum max maximal
above : below beneath
inside within : outside beyond
safe safely : dangerous unsafe risky
present : absent missing
empty : full
complete : incomplete partial
known : unknown
positive : negative
ascending : descending
forward : backward
internal : external
temporary temporarily : permanent permanently
mutable : immutable
absolute : relative
explicit explicitly : implicit implicitly
encrypt encrypted : decrypt plaintext
compress compressed : uncompressed expand
lossless : lossy
synchronous : asynchronous
connect connected : disconnect disconnected
lock locked : unlock unlocked
install : uninstall
upper uppercase : lower lowercase
hot warm : cold cool
wet : dry
even : odd
left : right
horizontal horizontally : vertical vertically
import : export
push : pull
inner : outer
front : back
sorted : unsorted
single : multiple several
separate separately : together
"""
"""An idea a line, called by its first word: what speaks for it, and against it."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What a word speaks for or against."""

    idea: str
    """A stem, or a colon and the name of an idea."""
    speaks_for: bool
    stem: str
    around: frozenset[str]
    """Stems of the content words of its sentence, its own among them."""
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    """Those on its sides, with figures, if it means something else when they change places."""


def signs(words: Sequence[Word]) -> tuple[Sign, ...]:
    """What the words of a sentence speak for and against, in their order."""
    negated, muted = _negated(words)
    around = frozenset(word.stem for word in words if word.is_content)
    told = [word.stem if word.is_content or word.text.isdecimal() else "" for word in words]
    found: list[Sign] = []
    for place, word in enumerate(words):
        if place in muted:
            continue
        turned = place in negated
        if word.is_content or word.text in _PREDICATES:
            found += (Sign(stemmed, own != turned, word.stem, around) for stemmed, own in _of_itself(word))
        following = [each.text for each in words[place + 1 : place + 1 + _THAN]]
        text = _PHRASES.get((word.text, following[0]), word.text) if following else word.text
        sides = [_side(()), _side(())]
        if word.text in _SIDED or "than" in following:
            sides = [_side(told[max(0, place - _SIDE) : place]), _side(told[place + 1 : place + 1 + _SIDE])]
        for idea, own in _IDEAS.get(text, _IDEAS.get(word.stem, ())):
            found.append(Sign(idea, own != turned, word.stem, around, *sides))
    return tuple(found)


def contradicted(sentence: Sequence[Sign], parts: Sequence[tuple[float, Sequence[Sign]]]) -> bool:
    """Whether the parts of a passage contradict a sentence.

    Each part comes with its likeness to the sentence: of those that speak of an idea, the most alike ones decide.
    """
    by_idea: dict[str, list[tuple[float, Sign]]] = {}
    for likeness, part in parts:
        for sign in part:
            by_idea.setdefault(sign.idea, []).append((likeness, sign))
    for idea in dict.fromkeys(sign.idea for sign in sentence):
        said = [sign for sign in sentence if sign.idea == idea]
        if len({sign.speaks_for for sign in said}) > 1:
            continue
        told = [(likeness, _agree(said[0], sign)) for likeness, sign in by_idea.get(idea, [])]
        most = max((likeness for likeness, agree in told if agree is not None), default=0.0)
        if {agree for likeness, agree in told if agree is not None and likeness >= most - _NEARLY} == {False}:
            return True
    return False


def _agree(said: Sign, found: Sign) -> bool | None:
    """Whether they say the same of an idea; None when they speak of it in other matters."""
    same = said.speaks_for == found.speaks_for
    if said.before and said.after and found.before and found.after:
        straight = common(said.before, found.before) + common(said.after, found.after)
        crossed = common(said.before, found.after) + common(said.after, found.before)
        return None if straight == crossed else same == (straight > crossed)
    others = found.around - {found.stem}
    related = len(others) <= _ALONE or common(said.around - {said.stem}, others)
    return same if related else None


def _side(stems: Sequence[str]) -> frozenset[str]:
    return frozenset(stems) - {""}


def _negated(words: Sequence[Word]) -> tuple[set[int], set[int]]:
    """The places of the words that a negation is about, and of those of which it says neither one nor the other."""
    found, muted = set[int](), set[int]()
    for place, word in enumerate(words):
        if word.text in _NEGATIONS:
            if _conditional(words, place):
                muted |= set(_about(words, place))
            else:
                found ^= set(_about(words, place))
    return found, muted


def _about(words: Sequence[Word], negation: int) -> list[int]:
    """The places of the words that one negation is about: `rebuilt` and `copied` of `nothing is rebuilt or copied`."""
    found: list[int] = []
    at = negation + 1
    if words[negation].text in _OF_SUBJECTS:
        at = _behind_subject(words, at)
    while at < len(words) and not words[at].broken and words[at].text not in _BREAKS:
        text = words[at].text
        if text in _MADE_NONE or (
            text in _COMPARING and "than" in (each.text for each in words[at + 1 : at + 1 + _THAN])
        ):
            break
        if text in _REACH_OVER or text in _COMPARING or text in NUMBER_WORDS or _SKIPPED.fullmatch(text):
            at += 1
            continue
        found.append(at)
        together = at + 1 < len(words) and not words[at + 1].broken
        if listed := _listed(words, at):
            return found + listed
        if together and at == negation + 1 and words[negation].text in ("no", "without") and words[at + 1].is_content:
            found.append(at + 1)
        break
    return found


def _listed(words: Sequence[Word], first: int) -> list[int]:
    """The places of the other words of a list: `cited` and `hashed` of `never shown, hashed or cited`."""
    for at in range(first + 1, min(first + _LISTED, len(words) - 1)):
        if words[at].text == "or":
            return [place for place in range(first + 1, at + 2) if words[place].is_content]
        if words[at].text in _AUXILIARIES or words[at].text in _BREAKS:
            break
    return []


def _conditional(words: Sequence[Word], negation: int) -> bool:
    """Whether a negation says when something holds, how far, or what to do: `Without a key, ...`, `no file is larger
    than 16 MiB`, `Don't use it`.
    """
    reach = words[negation + 1 : negation + 1 + _BOUND]
    if "than" in (word.text for word in reach):
        return True
    begins = negation == 0 or words[negation].broken
    if words[negation].text == "without":
        return begins
    return negation == 1 and words[0].text == "do"


def _behind_subject(words: Sequence[Word], subject: int) -> int:
    """The place behind the verb of a subject, or of the subject where none follows."""
    for at in range(subject + 1, min(subject + 4, len(words))):
        if words[at].broken:
            break
        if words[at].text in _AUXILIARIES:
            return at + 1
    return subject


def _of_itself(word: Word) -> list[tuple[str, bool]]:
    own = [(word.stem, True)]
    for prefix in _PREFIXES:
        base = word.text.removeprefix(prefix)
        if base != word.text and len(base) >= _BASE:
            own += [(stemmed, False) for stemmed in stem(base, LATIN[DEFAULT_LANGUAGE])]
    return own


def _read_opposites(text: str) -> Mapping[str, tuple[tuple[str, bool], ...]]:
    """Each word and its stem to the ideas that it speaks for or against."""
    table: dict[str, dict[tuple[str, bool], None]] = {}
    for line in text.strip().split("\n"):
        for speaks_for, side in zip((True, False), line.split(":"), strict=True):
            for word in side.split():
                for form in (word, *stem(word, LATIN[DEFAULT_LANGUAGE])):
                    table.setdefault(form, {})[f":{line.split()[0]}", speaks_for] = None
    return {form: tuple(ideas) for form, ideas in table.items()}


_IDEAS = _read_opposites(_OPPOSITES)
