from __future__ import annotations

import pytest

from octavo_serve.answering.citations.polarity import contradicted, signs
from octavo_serve.answering.citations.words import words


def contradicts(sentence: str, passage: str) -> bool:
    return contradicted(signs(words(sentence)), [(1.0, signs(words(passage)))])


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The model is downloaded.", "Nothing is downloaded."),
        ("A build deletes earlier artifacts.", "A build never removes artifacts."),
        ("A build deletes earlier artifacts.", "Earlier artifacts stay."),
        ("Passive objects can't be animated.", "Passive objects can be animated."),
        ("The field is trusted.", "The field is not believed."),
        ("The field is required.", "The field is optional."),
        ("The cache is enabled by default.", "The cache is disabled by default."),
        ("The cache is switched on.", "By default the cache is off."),
        ("Rendering works without a GPU.", "Rendering needs a GPU."),
        ("Comments are indexed along with the text.", "What is indexed leaves out comments."),
        (
            "The pointer is replaced before the artifact is verified.",
            "The pointer is replaced after the artifact is verified.",
        ),
        ("Dynamic weights are slower than static ones.", "Dynamic weights are faster than static ones."),
        ("Certificates have to be renewed manually.", "Certificates renew automatically."),
        ("The list is unsorted here.", "The list is sorted here."),
        ("No device has to be paired.", "Each device has to be paired."),
        ("Files are neither copied nor moved.", "Files are moved."),
        ("The field is not used.", "The field is used."),
        ("A block may not have 20,000 values.", "A block may have 20,000 values."),
    ],
)
def test_the_opposite_is_told(sentence: str, passage: str) -> None:
    assert contradicts(sentence, passage)
    assert contradicts(passage, sentence)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The cache is not enabled.", "The cache is disabled."),
        ("Earlier artifacts stay.", "A build never removes earlier artifacts."),
        (
            "The pointer is replaced after the artifact is verified.",
            "The artifact is verified before the pointer is replaced.",
        ),
        ("Static weights are slower than dynamic ones.", "Dynamic weights are faster than static ones."),
        ("Nothing is rebuilt or copied.", "No file is copied, none is rebuilt."),
        ("It neither optimizes nor monitors.", "There is no optimization or monitoring."),
        ("It isn't stored in the artifact.", "It is not stored inside."),
        ("Not only words are indexed.", "Words are indexed."),
        ("At most two files, no more than two.", "At most two files are kept."),
        ("Don't move the files.", "Whoever moves the files loses them."),
        ("Without an index all windows are compared.", "A large pack has an index."),
        ("No file may be larger than 16 MiB.", "A file may have 16 MiB."),
        ("It is never displayed or cited.", "It is never shown, hashed or cited."),
        ("Keep new files and remove old ones.", "Remove old files."),
        ("The server deletes its log.", "The build keeps all artifacts of a pack."),
        ("Tea is hot.", "Coffee grows on trees."),
        ("", ""),
    ],
)
def test_the_same_in_other_words_is_no_opposite(sentence: str, passage: str) -> None:
    assert not contradicts(sentence, passage)


def test_the_part_that_is_most_about_the_same_decides() -> None:
    said = signs(words("The cache of the server is enabled."))
    alike = signs(words("The cache of the server is enabled."))
    other = signs(words("The cache of the client is disabled."))
    assert not contradicted(said, [(1.4, alike), (0.5, other)])
    assert contradicted(said, [(0.5, alike), (1.4, other)])
