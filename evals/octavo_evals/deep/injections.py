"""Text that speaks to a model and not to a reader.

Pages that write about such text quote it, in code, in quotation marks or beside words such as `injection`; those are
notes, for a person to look at once.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from octavo_evals.deep.code_spans import code_spans
from octavo_evals.deep.subject import Found, Page, Subject

MAX_LOOKED_AT = 1_000
"""Places of one kind in one document that are judged."""

_S = r"[\s*_`>#]{1,8}"
_ORDERS: tuple[tuple[str, str], ...] = (
    (
        "tells it to drop its instructions",
        rf"\b(?:ignore|disregard|forget|override|bypass){_S}(?:(?:all|any|every|the|your|my|these|of){_S}){{0,3}}"
        rf"(?:previous|prior|above|earlier|preceding|existing|original|system|safety){_S}"
        rf"(?:(?:system|safety){_S})?(?:instructions?|prompts?|rules|directions|guidelines|messages|context|constraints)",
    ),
    (
        "asks for its prompt",
        rf"\b(?:reveal|print|repeat|output|show|leak|expose|reproduce){_S}(?:(?:me|us|all|the|your|of){_S}){{0,3}}"
        rf"(?:(?:hidden|full|entire|initial|original){_S})?(?:system{_S}(?:prompt|message|instructions)|"
        rf"(?<=your )(?:prompt|instructions))",
    ),
    (
        "gives it another part",
        rf"\byou{_S}are{_S}now{_S}(?:(?:in|an?|the|no){_S}){{0,2}}(?:\w+{_S})?"
        rf"(?:DAN\b|unrestricted|jailbroken|developer{_S}mode|(?:AI|language){_S}(?:model|assistant)|assistant|longer{_S}bound)",
    ),
    (
        "hides something from the user",
        rf"\b(?:do{_S}not|don['’]t|never){_S}(?:tell|inform|mention{_S}(?:this|it){_S}to|alert|notify){_S}the{_S}user",
    ),
    (
        "speaks to it",
        rf"\b(?:if{_S}you{_S}are|as|attention|note{_S}to|instructions?{_S}(?:for|to)|dear){_S}(?:(?:an?|any|all|the|every){_S}){{0,2}}"
        rf"(?:AI(?:{_S}(?:model|assistant|agent)s?)?|LLMs?|(?:large{_S})?language{_S}models?|chatbots?)(?:{_S})?"
        rf"(?:[,:]|(?:reading|processing|that{_S}reads|you{_S}must|must){_S})",
    ),
    (
        "makes it send something away",
        rf"\b(?:send|post|upload|forward){_S}(?:(?:all|the|this|your|any|user['’]?s?){_S}){{0,3}}"
        rf"(?:conversation|chat{_S}history|system{_S}prompt|credentials|api{_S}keys?|secrets){_S}(?:history{_S})?to{_S}"
        rf"[^\n]{{0,60}}(?:https?:|@)",
    ),
    (
        "imitates the markup of a conversation",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<<SYS>>|"
        r"</?(?:system|system_prompt|assistant|tool_call|tool_use|tool_result|function_calls?|function_results?|invoke)>|"
        r"<(?:invoke|parameter)\s+name=|\"role\"\s*:\s*\"system\"",
    ),
    ("imitates a new prompt", r"^[#*\s]{0,6}(?:new|updated|real|actual)\s+(?:system\s+)?(?:instructions|prompt)\s*:"),
)
_PATTERNS = tuple((what, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for what, pattern in _ORDERS)
_ABOUT = re.compile(
    r"injection|injected|jailbreak|attack|malicious|hostile|adversar|e\.g\.|such as|for example|phrases? like|"
    r"text like|says?\b.{0,20}$|template|chat format",
    re.IGNORECASE,
)
_QUOTES = re.compile(r"[\"“”«»‘]|(?<!\w)'|'(?!\w)|^\s*>", re.MULTILINE)
_FORMATS = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def check_injections(subject: Subject) -> Iterator[Found]:
    """Orders to a model in all documents."""
    for page in subject.pages:
        yield from orders_in(page)


def orders_in(page: Page) -> Iterator[Found]:
    """One finding for each kind of order in a document, at its worst place: written out before quoted."""
    text = _readable(page.text)
    code = code_spans(text)
    for what, pattern in _PATTERNS:
        found = islice(pattern.finditer(text), MAX_LOOKED_AT)
        places = [(_is_quoted(text, code, each), each.start(), each) for each in found]
        if places:
            quoted, start, order = min(places, key=lambda place: place[:2])
            line = text.count("\n", 0, start) + 1
            code_of = "deep-injection-quoted" if quoted else "deep-injection"
            yield Found(page.path, line, code_of, f"{what}: {' '.join(order.group().split())[:80]!r}")


def addresses_a_model(text: str) -> bool:
    """Whether any of the orders stands in it."""
    readable = _readable(text)
    return any(pattern.search(readable) for _, pattern in _PATTERNS)


def _readable(text: str) -> str:
    """As a model reads it: full-width and other look-alike forms as plain letters, invisible characters out.

    Line by line, for lines must stay what they are.
    """
    if text.isascii():
        return text
    return "\n".join(_FORMATS.sub("", unicodedata.normalize("NFKC", line)) for line in text.split("\n"))


def _is_quoted(text: str, code: list[tuple[int, int]], found: re.Match[str]) -> bool:
    start, end = found.span()
    before = bisect_right(code, (start, len(text))) - 1
    if before >= 0 and code[before][1] > start:
        return True
    line = text[text.rfind("\n", 0, start) + 1 : start]
    # the words before it in its line and the line before, where a page says what it is about to show
    near = text[max(0, text.rfind("\n", 0, max(0, start - len(line) - 1))) : start]
    after = text[end : end + 80].partition("\n")[0]
    return bool(_QUOTES.search(line) or _ABOUT.search(near[-300:]) or _ABOUT.search(after))
