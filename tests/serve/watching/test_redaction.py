from __future__ import annotations

import pytest

from octavo_serve.callers.keys import new_key
from octavo_serve.watching.redaction import printable, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("the key {} stands in the middle", id="key"),
        pytest.param("/search?key={}&q=x", id="in a URL"),
        pytest.param("Authorization: Bearer {}", id="header"),
        pytest.param("(b'authorization', b'Bearer {}')", id="header as bytes"),
        pytest.param('{{"Authorization": "{}"}}', id="header as JSON"),
    ],
)
@pytest.mark.parametrize("secret", [new_key(), JWT], ids=["key", "token"])
def test_no_key_or_token_stays(text: str, secret: str):
    assert secret not in redact(text.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Authorization: Basic dXNlcjpwYXNzd29yZA==", id="basic"),
        pytest.param("proxy-authorization=dXNlcjpwYXNzd29yZA==", id="without a scheme"),
        pytest.param("sent bearer dXNlcjpwYXNzd29yZA0123456789", id="opaque token"),
    ],
)
def test_credentials_of_other_kinds_do_not_stay(text: str):
    assert "dXNlcjpwYXNzd29yZA" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "basic troubleshooting steps",
        "the bearer authentication scheme",
        "octavo_serve is a package",
        "eyJ is base64",
    ],
)
def test_words_stay(text: str):
    assert redact(text) == text


def test_what_a_terminal_would_obey_is_escaped():
    assert printable("a\r\nb\x1b[31m\x7f\x9b\u2028\u202e\ud800c") == (
        "a\\x0d\\x0ab\\x1b[31m\\x7f\\x9b\\u2028\\u202e\\ud800c"
    )


def test_other_scripts_are_left_as_they_are():
    assert printable("Öl 油 🛢") == "Öl 油 🛢"
