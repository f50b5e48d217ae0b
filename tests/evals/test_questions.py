from __future__ import annotations

import pytest

from octavo_evals.questions import head, is_generic, question, topic


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        pytest.param("How to descale", "How do I descale?", id="how to"),
        pytest.param("When to call an electrician", "When should I call an electrician?", id="when to"),
        pytest.param("Do I need a battery?", "Do I need a battery?", id="a question"),
        pytest.param("Step 5: Apply the 120% Rule", "How do I apply the 120% Rule?", id="numbered, imperative"),
        pytest.param("EEVEE vs Cycles", "What is the difference between EEVEE and Cycles?", id="versus"),
        pytest.param("Decision: Grid vs Hybrid vs Off-Grid", "How do Grid, Hybrid and Off-Grid compare?", id="several"),
        pytest.param("How net metering works", "How does net metering work?", id="how it works"),
        pytest.param("Sizing the battery", "What should I know about sizing the battery?", id="gerund"),
        pytest.param("String inverter", "What is String inverter?", id="no gerund"),
        pytest.param("Exit codes of lint", "What is Exit codes of lint?", id="one thing"),
        pytest.param("Rapid shutdown rules", "What are Rapid shutdown rules?", id="several things"),
    ],
)
def test_a_heading_becomes_the_question_of_its_shape(heading: str, expected: str) -> None:
    assert question(heading) == expected


@pytest.mark.parametrize("heading", ["Overview", "See also", "1. Introduction", "🔥 Tips", "2026", "---"])
def test_a_heading_that_says_nothing_is_generic(heading: str) -> None:
    assert is_generic(heading)
    assert not is_generic("Descaling")


def test_numbers_and_ornaments_are_no_topic() -> None:
    assert topic("⚡ Phase 3: Wiring ⚡") == "Wiring"
    assert topic("2.1 Limits") == "Limits"


def test_the_head_of_a_title_is_what_it_is_about() -> None:
    assert head("Home Battery Storage — 2026 Comparison") == "Home Battery Storage"
    assert head("Decision: DIY or contractor") == "DIY or contractor"
