from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_build.plain import MAX_CHARACTERS, plain_text


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        pytest.param("# Head *x*\n\nSome **bold** text", "Head x \nSome bold text", id="marks"),
        pytest.param("`__init__` stays", "__init__ stays", id="code span"),
        pytest.param("```py\n# c\n__x__ = 1\n```", "# c\n__x__ = 1", id="fence"),
        pytest.param(
            "[text](https://example.org/long) and [[page|label]] and [[other]]", "text and label and other", id="links"
        ),
        pytest.param("| a | b |\n|---|---|\n| 1 | 2 |", "a b \n1 2", id="table"),
        pytest.param("![alt text](a.png)", "alt text", id="image"),
        pytest.param("<b>bold</b> word", "bold word", id="inline html"),
        pytest.param('see <img src="a.png" alt="the pump"> here', "see the pump here", id="inline image"),
        pytest.param("<p>\n<img alt='the pump' src=a>\n</p>", "the pump", id="image in an html block"),
        pytest.param("- one\n- two", "one \ntwo", id="list"),
        pytest.param('a {{< figure src="p.png" title="The pump" >}} b', "a p.png The pump b", id="hugo shortcode"),
        pytest.param("{{% notice tip %}}\nmind it\n{{% /notice %}}", "mind it", id="hugo block"),
        pytest.param("{% include head.html %} text {# note #}", "text", id="liquid"),
        pytest.param("## Head {#anchor}\n\n{:.wide}\ntext", "Head  \ntext", id="attributes"),
        pytest.param(":::note Mind\n\nthe step\n\n:::", "note Mind \nthe step", id="docusaurus"),
        pytest.param(":::{tip}\nthe step\n:::", "tip\nthe step", id="myst"),
        pytest.param('!!! warning "Hot"\n', 'warning "Hot"', id="mkdocs"),
        pytest.param("`{% raw %}` and {{ name }} and {a: 1}", "{% raw %} and {{ name }} and {a: 1}", id="code stays"),
        pytest.param("What???\n\nwow!!! yes ::: no", "What??? \nwow!!! yes ::: no", id="punctuation stays"),
    ],
)
def test_words_stay_and_marks_go(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


def test_very_long_text_is_taken_as_it_stands() -> None:
    text = "*a* " * MAX_CHARACTERS
    assert plain_text(text) == text


@pytest.mark.parametrize("opening", ["{{<", "{%", "{#", "{."])
def test_directives_that_never_end_cost_bounded_time_and_no_word(opening: str) -> None:
    text = f"{opening} x "
    assert plain_text(text * (MAX_CHARACTERS // len(text))).count("x") == MAX_CHARACTERS // len(text)


@given(st.text(st.characters(codec="utf-8")))
def test_no_text_breaks_it(text: str) -> None:
    plain_text(text)


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=30))
def test_no_word_is_lost(words: list[str]) -> None:
    marked = " ".join(f"**{word}**" if len(word) % 2 else word for word in words)
    assert plain_text(marked).split() == words
