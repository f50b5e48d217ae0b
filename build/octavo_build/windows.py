"""Passages cut into windows, the texts an encoder takes whole: a line of headings above a piece of the passage.

An encoder drops what exceeds its limit without a word, so sizes are counted with its own tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Encoding, Tokenizer

from octavo_artifact.errors import ConfigError
from octavo_artifact.schema import EncoderSpec


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Sizes of windows, in tokens of the encoder's tokenizer."""

    piece_tokens: int = 200
    overlap_tokens: int = 30
    """At most so many of a piece's tokens are repeated at the head of the next."""
    heading_tokens: int = 50
    """A longer heading line is cut."""
    window_tokens: int = 256
    """The encoder's limit, special tokens included."""

    def __post_init__(self) -> None:
        if not 0 <= 2 * self.overlap_tokens < self.piece_tokens < self.window_tokens or self.heading_tokens < 0:
            raise ValueError(f"expected 0 <= 2 overlap < piece < window and 0 <= heading, found {self}")


LIMITS = WindowLimits()
"""Of an encoder of 256 tokens."""

_LONGEST = 512
"""Tokens of a window at most, however many the encoder takes: one vector for more text is near to everything."""


def limits_for(spec: EncoderSpec, tokenizer: Tokenizer) -> WindowLimits:
    """Limits for windows of an encoder, which takes its passage prefix out of the same tokens.

    Raises ConfigError when the prefix leaves nothing.
    """
    prefix = len(tokenizer.encode(spec.passage_prefix, add_special_tokens=False).ids)
    window = min(spec.max_tokens - prefix, _LONGEST)
    if window < 2:
        raise ConfigError(f"encoder {spec.name}: {spec.max_tokens} tokens, of which its passage prefix takes {prefix}")
    piece, overlap, heading = (
        tokens * window // LIMITS.window_tokens
        for tokens in (LIMITS.piece_tokens, LIMITS.overlap_tokens, LIMITS.heading_tokens)
    )
    return WindowLimits(piece, overlap, heading, window)


def load_tokenizer(path: Path) -> Tokenizer:
    """Tokenizer of a `tokenizer.json`, neither padding nor truncating, whatever the file says."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def windows_of(tokenizer: Tokenizer, heading_line: str, visible: str, limits: WindowLimits = LIMITS) -> list[str]:
    """Windows that together hold all of `visible`, in order; of blank text one with the heading line alone, if any.

    Raises ValueError when the tokenizer makes more than `limits.window_tokens` even of a single token of the text.
    """
    heading = _cut_heading(tokenizer, heading_line.strip(), limits.heading_tokens)
    encoding = tokenizer.encode(visible, add_special_tokens=False)
    if not visible.strip() or not encoding.ids:
        return [heading] if heading else []
    above = f"{heading}\n" if heading else ""
    size = limits.piece_tokens
    while size:
        windows = [above + piece for piece in _pieces(encoding, visible, size, min(limits.overlap_tokens, size // 4))]
        # a tokenizer may make more of a piece than of the same text in its place
        if all(len(each) <= limits.window_tokens for each in tokenizer.encode_batch_fast(windows)):
            return windows
        size //= 2
    raise ValueError(f"expected windows of {limits.window_tokens} tokens, found more in one of a single token")


def _cut_heading(tokenizer: Tokenizer, heading: str, limit: int) -> str:
    offsets = tokenizer.encode(heading, add_special_tokens=False).offsets
    if len(offsets) <= limit:
        return heading if offsets else ""
    return heading[: offsets[limit - 1][1]] if limit else ""


def _pieces(encoding: Encoding, text: str, size: int, overlap: int) -> Iterator[str]:
    starts = [start for start, _ in encoding.offsets]
    words = encoding.word_ids
    first, begin = 0, 0
    while first < len(starts):
        last = len(starts)
        if last - first > size:
            latest = range(first + size, first + size // 2, -1)
            last = _between_words(text, starts, words, latest)
            if last is None:
                # tokens may share a character, which is never cut
                last = next((index for index in range(first + size, len(starts)) if starts[index] > begin), len(starts))
        end = starts[last] if last < len(starts) else len(text)
        if piece := text[begin:end].strip():
            yield piece
        if last == len(starts):
            return
        first = _between_words(text, starts, words, range(last - overlap, last)) or last
        begin = starts[first]


def _between_words(text: str, starts: list[int], words: list[int | None], tokens: range) -> int | None:
    """First of the tokens that follows blank space, else the first that opens a word as the tokenizer has it."""
    spaced = (index for index in tokens if text[starts[index] - 1].isspace())
    return next(spaced, None) or next((index for index in tokens if words[index] != words[index - 1]), None)
