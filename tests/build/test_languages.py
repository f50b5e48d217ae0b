from __future__ import annotations

import pytest

from octavo_build.languages import guess, language_of

TEXTS = {
    "en": "The lamp is lit by the keeper and it can be seen from the sea, but not in fog.",
    "de": "Die Lampe wird von dem Wärter angezündet und ist auf dem Meer zu sehen, nicht aber im Nebel.",
    "fr": "La lampe est allumée par le gardien et les marins la voient sur la mer, mais pas dans le brouillard.",
    "es": "La lámpara se enciende por la noche y los marineros la ven en el mar, pero no con la niebla.",
    "da": "Lampen er tændt af vagten, og den kan ses fra havet, men ikke i tåge, og ikke efter at det blev mørkt.",
    "nl": "De lamp wordt door de wachter aangestoken en is op zee te zien, maar niet in de mist of het donker.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_common_words_tell_a_language(language: str) -> None:
    assert guess(TEXTS[language]) == guess(TEXTS[language].upper()) == language


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("123 456", id="numbers"),
        pytest.param("\n\t", id="blanks"),
        pytest.param("電池の容量", id="another script"),
        pytest.param("def f(x): return x", id="code"),
        pytest.param("a e o a e i o i " * 50, id="variables"),
        pytest.param("il di la che " + "value size count " * 40, id="a few words of many"),
        pytest.param("The lamp.", id="a few words"),
        pytest.param(f"{TEXTS['en']} {TEXTS['de']}", id="two languages"),
        pytest.param("\x00🍵", id="no words"),
    ],
)
def test_a_text_that_does_not_tell_is_not_guessed_at(text: str) -> None:
    assert guess(text) is None


def test_the_author_is_believed_then_the_nearest_text_that_tells() -> None:
    assert language_of("de-AT", TEXTS["fr"]) == "de"
    assert language_of(None, "123", TEXTS["fr"], TEXTS["de"]) == "fr"
    assert language_of(None, "", "123") == language_of("") == "en"
