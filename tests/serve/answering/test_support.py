from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from octavo_serve.answering.citations.sentences import sentences
from octavo_serve.answering.citations.support import Encode, Verdict, check
from octavo_serve.encoder import open_encoder
from running import ROOT

TEA = """## Steeping

Black tea steeps for 4 minutes in boiling water. Green tea takes two minutes at 80 °C; hotter water makes it bitter.
The pot is never rinsed with soap.

- The strainer `fine_mesh` keeps out dust.
- Leaves may be used again, except those of black tea.

| tea | leaves | water |
|---|---|---|
| black | 12 g | 1 l |
| green | 8 g | 0.5 l |

```
brew --kind black --minutes 4
```
"""
CONTEXT = "Tea for beginners > Steeping"


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        pytest.param("Black tea steeps for four minutes in boiling water.", None, id="nearly its words"),
        pytest.param("Steep green tea at 80 °C, because hotter water would make it bitter.", None, id="rephrased"),
        pytest.param("For black tea take 12 g of leaves and 1 l of water.", None, id="row of a table"),
        pytest.param("Don't rinse the pot with soap.", None, id="the same negation"),
        pytest.param("Run `brew --kind black`, which steeps black tea for 4 minutes.", None, id="code"),
        pytest.param("A `fine_mesh` strainer keeps dust out.", None, id="literal"),
        pytest.param("Beginners may use the leaves of green tea again.", None, id="words of the headings"),
        pytest.param("According to the documentation, the pot is never rinsed.", None, id="who says so"),
        pytest.param("Yes.", None, id="nothing claimed"),
        pytest.param("", None, id="empty"),
        pytest.param("Black tea steeps for 6 minutes in boiling water.", "number", id="another number"),
        pytest.param("Green tea takes two hours at 80 °C.", "number", id="another unit"),
        pytest.param("The strainer keeps out 12 g of dust.", "number", id="the number of something else"),
        pytest.param("Hotter water than 80 °F makes green tea bitter.", "number", id="another scale"),
        pytest.param("The pot is always rinsed with soap.", "negation", id="opposite"),
        pytest.param("The strainer lets dust in, it does not keep dust out.", "negation", id="negated"),
        pytest.param("The strainer `coarse_mesh` keeps out dust.", "terms", id="another literal"),
        pytest.param("White tea from Ceylon should be stored in the dark.", "terms", id="about something else"),
        pytest.param("Black tea loses its caffeine after three infusions.", "terms", id="made up"),
        pytest.param("Coffee beans are roasted at 200 °C.", "terms", id="another subject"),
    ],
)
def test_a_passage_supports_what_it_says(sentence: str, reason: str | None) -> None:
    verdict = check(sentence, TEA, context=CONTEXT)
    assert (verdict.supported, verdict.reason) == (reason is None, reason)


def test_of_several_numbers_the_one_beside_the_words_counts() -> None:
    passage = "Exit codes: 0 done; 1 the release is damaged; 2 wrong arguments. The release is packed at level 3."
    assert check("Exit code 1 means that the release is damaged.", passage).supported
    assert check("Exit code 3 means that the release is damaged.", passage).reason == "number"


def test_the_evidence_is_the_part_that_speaks_of_it() -> None:
    start, end = check("Green tea takes two minutes at 80 °C.", TEA, context=CONTEXT).span
    assert TEA[start:end] == "Green tea takes two minutes at 80 °C; hotter water makes it bitter."


def test_neighbouring_parts_are_evidence_together() -> None:
    start, end = check("The strainer keeps out dust, and leaves may be used again.", TEA).span
    assert TEA[start:end].startswith("The strainer")
    assert TEA[start:end].endswith("black tea.")


def test_a_sentence_that_claims_nothing_has_the_full_score() -> None:
    assert check("Yes.", TEA) == Verdict(True, None, 1.0, (0, 0))


def test_the_score_says_how_far_it_speaks_of_it_whatever_it_says() -> None:
    same, other = check("Black tea steeps for 4 minutes.", TEA), check("Black tea steeps for 9 minutes.", TEA)
    assert same.score == other.score == 1.0
    assert same.supported
    assert not other.supported


def test_an_empty_passage_supports_nothing() -> None:
    assert check("Black tea steeps.", "") == Verdict(False, "terms", 0.0, (0, 0))


@pytest.fixture(scope="module")
def encode(built: Path) -> Encode:
    folder = next(path for path in sorted((built / "encoders").iterdir()) if path.is_dir())
    return open_encoder(folder, folder.name).encode


PARAPHRASED = "If you want to favour documents without shutting out the others, use boosts rather than a filter."
BOOSTS = (
    "To prefer documents without excluding others, use `boosts`, see the parameters of a search. Filters are strict."
)


def test_an_encoder_finds_the_same_in_other_words(encode: Encode) -> None:
    assert not check(PARAPHRASED, BOOSTS).supported
    assert check(PARAPHRASED, BOOSTS, encode).supported


def test_an_encoder_tells_that_the_same_words_say_something_else() -> None:
    sentence = "Black tea steeps in boiling water."

    def encode(text: str) -> NDArray[np.float32]:
        return np.array([1, 0] if text == sentence else [0, 1], np.float32)

    assert check(sentence, TEA).supported
    assert check(sentence, TEA, encode).reason == "meaning"


def test_numbers_and_negations_count_with_an_encoder_too(encode: Encode) -> None:
    reasons = [
        check(sentence, TEA, encode, CONTEXT).reason
        for sentence in (
            "Black tea steeps for 4 minutes in boiling water.",
            "Black tea steeps for 6 minutes in boiling water.",
            "The pot is always rinsed with soap.",
        )
    ]
    assert reasons == [None, "number", "negation"]


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((ROOT / "packs/octavo").rglob("*.md")), ids=lambda page: page.stem)
def test_a_page_supports_each_sentence_of_its_own(page: Path) -> None:
    passage = page.read_text().partition("\n---\n")[2]
    assert [each.text for each in sentences(passage) if not check(each.text, passage).supported] == []


TEXTS = st.lists(
    st.sampled_from(
        [
            *"aB1.,`-|# \n",
            "tea ",
            "not ",
            "before ",
            "4 minutes ",
            "two ",
            "is ",
            "never ",
            "`x_y` ",
            "茶",
            "ẞ",
            "- ",
            "```\n",
        ]
    ),
    max_size=25,
).map("".join)


@given(TEXTS, TEXTS)
def test_any_text_has_a_verdict_of_a_place_in_the_passage(sentence: str, passage: str) -> None:
    verdict = check(sentence, passage)
    assert check(sentence, passage, lambda _: np.array([1.0, 0.0], np.float32)).score <= 1
    assert 0 <= verdict.score <= 1
    assert 0 <= verdict.span[0] <= verdict.span[1] <= len(passage)
    assert verdict.supported == (verdict.reason is None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    ["[", "`", "1", "1 ", "1 s ", "not ", "before ", "a. ", "enabled not ", "two ", "x1 ", "keep it, remove it. "],
)
def test_hostile_text_is_checked_in_one_pass(hostile: str) -> None:
    text = hostile * (100_000 // len(hostile))
    for sentence, passage in ((text, TEA), (PARAPHRASED, text), (text, text)):
        assert 0 <= check(sentence, passage).score <= 1
