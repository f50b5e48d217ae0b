"""Questions that a document's own headings make: what a person might ask who does not know the heading."""

from __future__ import annotations

import re

_NUMBERED = re.compile(
    r"^(?:(?:step|phase|part|section|chapter|option|rule|tip)\s+)?(?:#?\d{1,4}|[IVX]{1,4}|[A-D])[.:)]\s+|^\d+(?:\.\d+)+\s+",
    re.I,
)
_NUMBERED_WORD = re.compile(r"^(?:step|phase|part|chapter)\s+\d+\s*(?:[-–—:.]\s*|$)", re.I)
_ODD = re.compile(r"[^\w\s\"'’(),./:+&%$€°#?!<>=×·–—-]+")
_VERSUS = re.compile(r"\s+(?:vs\.?|versus)\s+", re.I)
_INDIRECT = re.compile(r"(How|Why|When) (.+) (work|matter|exist|happen|fail)s?$", re.I)
_PART_END = re.compile(r":\s|\s[—–-]\s|\s\(|\)\s")
_GENERIC = frozenset(
    "about;also;appendix;background;changelog;checklist;common mistakes;conclusion;contents;context;definition;details;"
    "example;examples;exceptions;exit codes;faq;further reading;gotchas;how it works;in practice;intro;introduction;"
    "key points;key takeaways;lead summary;limits;more;next steps;notes;options;other;overview;prerequisites;quick "
    "reference;references;related;related concepts;related files;related pages;requirements;resources;see also;setup;"
    "solution;sources;steps;summary;symptoms;table of contents;the problem;the solution;tips;tldr;tl;dr;"
    "troubleshooting;usage;what it is;why it matters".split(";")
)
_VERBS = frozenset(
    "add apply ask assess avoid back bake bind build buy calculate change check choose clean clear close "
    "configure connect convert copy create cut debug define delete deploy determine disable download edit enable "
    "export find fix follow get import increase inspect install invoke keep know launch learn let lint load make "
    "mark measure merge migrate move name offer open optimize organize pick place plan prepare prevent publish "
    "put read rebuild reduce register release remove render repair replace reset restart restore roll run save "
    "secure select send serve set share size sort split start stop store submit switch test turn understand "
    "uninstall unwrap update upgrade use verify walk wire work write".split()
)
_NO_GERUND = frozenset(
    {"building", "ceiling", "king", "lighting", "morning", "ring", "spring", "string", "thing", "wing"}
)
_ASKS = ("how", "what", "why", "when", "where", "which", "who", "can", "do", "does", "should", "is", "are", "will")


def topic(heading: str) -> str:
    """A heading without its number and ornaments."""
    text = _ODD.sub(" ", heading)
    for pattern in (_NUMBERED_WORD, _NUMBERED):
        text = pattern.sub("", text.strip())
    return " ".join(text.split()).strip(" :-–—.")


def is_generic(heading: str) -> bool:
    """Whether the heading says nothing of what stands below it."""
    return topic(heading).casefold() in _GENERIC or not re.search(r"[^\W\d]{2}", topic(heading))


def is_verb(word: str) -> bool:
    """Whether a heading that begins with it tells what to do."""
    return word.casefold() in _VERBS


def question(heading: str) -> str:
    """A heading as a question; the form follows the heading's shape."""
    text = topic(heading)
    first, _, rest = text.partition(" ")
    lower, second = first.casefold(), rest.partition(" ")
    if text.endswith("?"):
        return text
    if found := next((part for part in _parts(text) if _VERSUS.search(part)), None):
        return _comparison(found)
    if lower in ("how", "when", "where", "what", "which") and second[0].casefold() == "to" and second[2]:
        return f"{lower.capitalize()} {'do' if lower == 'how' else 'should'} I {second[2]}?"
    if found := _INDIRECT.match(text):
        return f"{found[1]} {'do' if found[2].endswith('s') else 'does'} {found[2]} {found[3].lower()}?"
    if lower in _ASKS:
        return f"{text}?"
    if lower in _VERBS and rest:
        return f"How do I {lower} {rest}?"
    if lower.endswith("ing") and lower not in _NO_GERUND and rest and not first.isupper():
        return f"What should I know about {lower} {rest}?"
    last = text.rpartition(" ")[2].casefold()
    many = last.endswith("s") and not last.endswith(("ss", "us", "is"))
    return f"What {'are' if many else 'is'} {text}?"


def head(title: str) -> str:
    """What a title is about, without what it says of it after a colon, a dash or in brackets."""
    first, *rest = _parts(topic(title))
    return rest[0] if rest and " " not in first else first


def _parts(text: str) -> list[str]:
    return [part.strip(" ()") for part in _PART_END.split(text) if part.strip(" ()")] or [text]


def _comparison(text: str) -> str:
    *others, last = _VERSUS.split(text)
    if len(others) == 1:
        return f"What is the difference between {others[0]} and {last}?"
    return f"How do {', '.join(others)} and {last} compare?"
