"""What a pack says of itself, as one line that can be shown anywhere."""

from __future__ import annotations

import re

# C0, C1 and line separators become a space; what turns the direction of writing or is not seen at all goes, but not the
# joiners, which Indic and Arabic scripts need. U+E0000 to U+E007F spell invisible ASCII.
_CONTROLS = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")
_UNSEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


def one_line(text: str) -> str:
    """The text in one line, without control characters and what turns the direction of writing."""
    return _CONTROLS.sub(" ", _UNSEEN.sub("", text)).strip()
