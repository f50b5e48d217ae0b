"""The live library: what a look at a dist that changed makes of what is served."""

from __future__ import annotations

import gc
import logging
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from history import History, rename_over
from octavo_artifact.errors import ConfigError, NotFoundError
from octavo_artifact.layout import ENCODERS, POINTER
from octavo_serve import releases as module
from octavo_serve.callers.views import View
from octavo_serve.catalog import OpenPack, open_release
from octavo_serve.encoder import Encoder
from octavo_serve.releases import Releases
from octavo_serve.requests import ReadRequest, SearchRequest


@pytest.fixture
def here(history: History, tmp_path: Path) -> History:
    return history.copied(tmp_path / "dist")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The releases that were opened, and so verified, from here on."""
    opened: list[str] = []

    def noting(artifact: Path, *others: object) -> OpenPack:
        opened.append(artifact.name)
        return open_release(artifact, *others)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(module, "open_release", noting)
    return opened


def no_encoders(shelves: object) -> dict[str, Encoder]:
    return {}


def is_mapped(here: History, digest: str) -> bool:
    # by its place: other tests of this process may have the same release open elsewhere
    return str(here.dist / "tiny" / digest) in Path("/proc/self/maps").read_text()


def test_a_pointer_that_moved_is_followed_and_what_did_not_change_stays_open(here: History, opened: list[str]) -> None:
    releases = Releases(here.dist)
    notes, encoder = releases.packs["notes"], releases.packs["tiny"].index.encoder
    opened.clear()
    here.point(here.second)
    releases.refresh()
    assert releases.packs["tiny"].digest == here.second
    assert releases.packs["notes"] is notes
    assert releases.packs["tiny"].index.encoder is encoder
    assert opened == [here.second]


def test_without_a_change_a_look_opens_nothing(here: History, opened: list[str]) -> None:
    releases = Releases(here.dist)
    catalog = releases.current
    opened.clear()
    assert releases.refresh() is catalog
    assert opened == []


def test_a_build_that_begins_beside_the_releases_changes_nothing(here: History, opened: list[str]) -> None:
    releases = Releases(here.dist)
    catalog = releases.current
    opened.clear()
    (here.dist / "tiny" / ".staging-0123").mkdir()
    assert releases.refresh() is catalog
    assert opened == []


def test_a_pointer_that_is_written_in_place_is_followed_too(here: History) -> None:
    releases = Releases(here.dist)
    (here.dist / "tiny" / POINTER).write_text(f'{{"digest":"{here.second}"}}')
    assert releases.refresh().packs["tiny"].digest == here.second


def test_a_damaged_release_is_refused_by_name_once_and_the_old_one_served_on(
    here: History, opened: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    releases = Releases(here.dist)
    opened.clear()
    here.report(here.second).unlink()
    here.point(here.second)
    for _ in range(3):
        releases.refresh()
    reason = f"tiny/{here.second[:12]}/report.json: missing"
    assert releases.packs["tiny"].digest == here.first
    assert {slug: (found.digest, found.reason) for slug, found in releases.failed.items()} == {
        "tiny": (here.second, reason)
    }
    assert releases.refused == {}
    assert opened == [here.second]
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert errors == [f"tiny: refused {reason}; {here.first[:12]} is served on"]


def test_the_same_release_is_taken_when_it_was_mended(here: History) -> None:
    releases = Releases(here.dist)
    report = here.report(here.second)
    whole = report.read_bytes()
    rename_over(report, b"{}")
    here.point(here.second)
    assert releases.refresh().packs["tiny"].digest == here.first
    rename_over(report, whole)
    catalog = releases.refresh()
    assert catalog.packs["tiny"].digest == here.second
    assert catalog.failed == {}


def test_a_release_that_arrives_after_its_pointer_is_taken(here: History) -> None:
    releases = Releases(here.dist)
    folder, elsewhere = here.dist / "tiny" / here.second, here.dist / "elsewhere"
    folder.rename(elsewhere)
    here.point(here.second)
    assert releases.refresh().failed["tiny"].digest == here.second
    elsewhere.rename(folder)
    assert releases.refresh().packs["tiny"].digest == here.second


def test_a_release_without_its_encoder_is_refused_until_the_encoder_is_there(
    here: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = Releases(here.dist)
    encoders = here.dist / ENCODERS
    # as if the release were made with an encoder that no pack has open
    monkeypatch.setattr(module, "_encoders", no_encoders)
    encoders.rename(here.dist / "away")
    here.point(here.second)
    refusal = releases.refresh().failed["tiny"]
    assert refusal.reason.startswith("encoders/")
    assert releases.packs["tiny"].digest == here.first
    (here.dist / "away").rename(encoders)
    assert releases.refresh().packs["tiny"].digest == here.second


def test_a_release_for_a_narrower_audience_is_refused_and_does_not_say_for_which(
    here: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = Releases(here.dist)
    made = OpenPack.__init__

    def narrower(pack: OpenPack, artifact: Path, encoder: object, manifest: object, *others: object) -> None:
        manifest = replace(manifest, pack={**manifest.pack, "audience": "family"})  # type: ignore[attr-defined,type-var]
        made(pack, artifact, encoder, manifest, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenPack, "__init__", narrower)
    here.point(here.second)
    catalog = releases.refresh()
    assert catalog.packs["tiny"].digest == here.first
    assert catalog.failed["tiny"].reason == f"tiny/{here.second[:12]}: for an audience that is not served here"
    assert catalog.withheld == {}


@pytest.mark.parametrize("pointer", [b"", b"{}", b'{"digest":"0123"}', b"[" * 9999])
def test_a_pointer_that_is_none_is_refused_and_the_old_release_served_on(here: History, pointer: bytes) -> None:
    releases = Releases(here.dist)
    rename_over(here.dist / "tiny" / POINTER, pointer)
    catalog = releases.refresh()
    assert catalog.packs["tiny"].digest == here.first
    assert catalog.failed["tiny"].digest is None
    assert catalog.failed["tiny"].reason.startswith("tiny/latest.json: ")
    here.point(here.first)
    assert releases.refresh().failed == {}


def test_new_packs_appear_and_those_whose_folder_is_gone_go(here: History, tmp_path: Path) -> None:
    notes = (here.dist / "notes").rename(tmp_path / "notes")
    releases = Releases(here.dist)
    assert list(releases.packs) == ["tiny"]
    notes.rename(here.dist / "notes")
    assert list(releases.refresh().packs) == ["notes", "tiny"]
    shutil.rmtree(here.dist / "notes")
    assert list(releases.refresh().packs) == ["tiny"]


def test_a_folder_becomes_a_pack_when_its_pointer_is_written(here: History) -> None:
    pointer = here.dist / "notes" / POINTER
    content = pointer.read_bytes()
    pointer.unlink()
    (here.dist / "notes").rename(here.dist / "spare")
    (here.dist / "notes").mkdir()
    releases = Releases(here.dist)
    assert list(releases.packs) == ["tiny"]
    next(path for path in (here.dist / "spare").iterdir() if path.is_dir()).rename(here.dist / "notes" / "aside")
    assert list(releases.refresh().packs) == ["tiny"]
    (here.dist / "notes" / "aside").rename(here.dist / "notes" / content.decode().split('"')[3])
    rename_over(pointer, content)
    assert list(releases.refresh().packs) == ["notes", "tiny"]


def test_a_dist_without_packs_is_a_mistake_and_not_a_release(
    here: History, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    releases = Releases(here.dist)
    catalog = releases.current
    here.dist.rename(tmp_path / "away")
    for _ in range(3):
        assert releases.refresh() is catalog
    here.dist.mkdir()
    assert releases.refresh() is catalog
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "the folder of releases cannot be read (No such file or directory)",
        "there is no pack in the folder of releases any more",
    ]
    here.dist.rmdir()
    (tmp_path / "away").rename(here.dist)
    here.point(here.second)
    assert releases.refresh().packs["tiny"].digest == here.second


def test_at_the_start_a_dist_without_packs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no pack; build one"):
        Releases(tmp_path)


def test_two_refreshes_open_a_release_once(here: History, opened: list[str]) -> None:
    releases = Releases(here.dist)
    opened.clear()
    here.point(here.second)
    threads = [threading.Thread(target=releases.refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [here.second]


# Several releases of a pack


def test_a_replaced_release_answers_by_its_digest_until_the_next_but_one(here: History) -> None:
    releases = Releases(here.dist, keep=1)
    here.point(here.second)
    releases.refresh()
    for name in (f"tiny@{here.first}", f"tiny@{here.first[:12]}"):
        answer = releases.search(SearchRequest(query="hard water", pack=name))
        assert (answer["pack"], answer["digest"]) == ("tiny", here.first)
        assert {hit["digest"] for hit in answer["results"]} == {here.first}
        read = releases.choose(name).read(ReadRequest(path="concepts/water.md"))
        assert (read["digest"], "second edition" in read["content"]) == (here.first, False)
    assert releases.choose(f"tiny@{here.second}") is releases.choose("tiny")
    here.point(here.third)
    releases.refresh()
    assert releases.choose(f"tiny@{here.second[:12]}").digest == here.second
    with pytest.raises(NotFoundError):
        releases.choose(f"tiny@{here.first}")


def test_a_release_that_comes_back_is_not_opened_again(here: History, opened: list[str]) -> None:
    releases = Releases(here.dist, keep=1)
    here.point(here.second)
    releases.refresh()
    opened.clear()
    here.point(here.first)
    assert releases.refresh().packs["tiny"].digest == here.first
    assert opened == []
    assert releases.choose(f"tiny@{here.second}").digest == here.second


@pytest.mark.parametrize("name", ["tiny@{first}", "tiny@{first:.11}", "tiny@", "nones@{second}", "notes@{second}", "@"])
def test_a_name_of_no_mounted_release_is_answered_as_that_of_no_pack(here: History, name: str) -> None:
    releases = Releases(here.dist)
    here.point(here.second)
    releases.refresh()
    name = name.format(first=here.first, second=here.second)
    with pytest.raises(NotFoundError, match=r"^pack: not served here; known are notes, tiny$"):
        releases.choose(name)
    with pytest.raises(NotFoundError, match=r"^pack: not served here; known are notes, tiny$"):
        releases.search(SearchRequest(query="water", pack=name))


def test_a_view_of_another_pack_knows_of_no_mounted_release(here: History) -> None:
    releases = Releases(here.dist, keep=1)
    here.point(here.second)
    view, open_to = View(releases.refresh(), frozenset({"notes"})), View(releases.current, frozenset({"tiny"}))
    name = f"tiny@{here.first}"
    assert open_to.choose(name).digest == here.first
    assert open_to.search(SearchRequest(query="water", pack=name))["digest"] == here.first
    told: list[str] = []
    for asked in (name, f"nones@{here.first}"):
        with pytest.raises(NotFoundError) as chosen:
            view.choose(asked)
        with pytest.raises(NotFoundError) as searched:
            view.search(SearchRequest(query="water", pack=asked))
        told += [str(chosen.value), str(searched.value)]
    assert set(told) == {"pack: not served here; known are notes"}
    assert [slug for slug in view.releases if "tiny" in slug] == []


def test_what_the_operator_mounts_is_always_there(here: History) -> None:
    releases = Releases(here.dist, mount=[f"tiny@{here.third[:12]}"])
    assert releases.choose(f"tiny@{here.third}").digest == here.third
    here.point(here.third)
    releases.refresh()
    here.point(here.second)
    releases.refresh()
    assert {pack.digest for pack in releases.releases.values() if pack.slug == "tiny"} == {here.second, here.third}


def test_what_is_to_be_mounted_and_is_not_there_is_refused_with_its_reason(here: History) -> None:
    damaged, absent, foreign = f"tiny@{here.second}", f"tiny@{'0' * 12}", f"nones@{here.first}"
    report = here.report(here.second)
    whole = report.read_bytes()
    report.unlink()
    releases = Releases(here.dist, mount=[damaged, absent, foreign])
    assert releases.refused == {
        damaged: f"tiny/{here.second[:12]}/report.json: missing",
        absent: f"{absent}: no release of this digest",
        foreign: f"{foreign}: no pack of this name in the folder of releases",
    }
    assert list(releases.packs) == ["notes", "tiny"]
    rename_over(report, whole)
    assert damaged in releases.refresh(again=True).releases


def test_a_kept_release_whose_folder_was_removed_is_let_go(here: History) -> None:
    releases = Releases(here.dist, keep=1)
    here.point(here.second)
    releases.refresh()
    shutil.rmtree(here.dist / "tiny" / here.first)
    assert f"tiny@{here.first}" not in releases.refresh().releases


def test_whoever_holds_an_old_catalog_goes_on_with_it_and_then_its_files_are_closed(here: History) -> None:
    releases = Releases(here.dist)
    catalog = releases.current
    here.point(here.second)
    releases.refresh()
    answer = catalog.search(SearchRequest(query="hard water", pack="tiny"))
    assert {answer["digest"], *(hit["digest"] for hit in answer["results"])} == {here.first}
    assert catalog.choose("tiny").read(ReadRequest(path="concepts/water.md"))["digest"] == here.first
    assert is_mapped(here, here.first)
    del catalog
    gc.collect()
    assert not is_mapped(here, here.first)
    assert is_mapped(here, here.second)
