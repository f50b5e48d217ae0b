from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from octavo_artifact.errors import ArtifactError
from octavo_artifact.manifest import MAX_PREVIOUS, read_pointer, read_previous
from octavo_artifact.placing import exclusive, held, point

DIGESTS = [f"{number:064x}" for number in range(12)]


def pointer(pack: Path) -> dict[str, object]:
    return json.loads((pack / "latest.json").read_bytes())


def test_a_first_pointer_has_a_digest_only(tmp_path: Path) -> None:
    point(tmp_path / DIGESTS[0])
    assert (tmp_path / "latest.json").read_bytes() == f'{{"digest":"{DIGESTS[0]}"}}\n'.encode()
    assert (read_pointer(tmp_path), read_previous(tmp_path)) == (DIGESTS[0], ())


def test_a_pointer_remembers_what_was_current_newest_first(tmp_path: Path) -> None:
    for digest in DIGESTS:
        point(tmp_path / digest)
    assert read_pointer(tmp_path) == DIGESTS[-1]
    assert read_previous(tmp_path) == tuple(reversed(DIGESTS[:-1]))[:MAX_PREVIOUS]


def test_what_is_current_already_is_not_pointed_to_again(tmp_path: Path) -> None:
    for digest in (DIGESTS[0], DIGESTS[1]):
        point(tmp_path / digest)
    before = (tmp_path / "latest.json").stat()
    point(tmp_path / DIGESTS[1])
    assert (tmp_path / "latest.json").stat() == before


def test_a_release_that_is_current_again_is_remembered_once(tmp_path: Path) -> None:
    for number in (0, 1, 0, 2, 1):
        point(tmp_path / DIGESTS[number])
    assert pointer(tmp_path) == {"digest": DIGESTS[1], "previous": [DIGESTS[2], DIGESTS[0]]}


def test_an_old_pointer_begins_the_history(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text(json.dumps({"digest": DIGESTS[0]}))
    point(tmp_path / DIGESTS[1])
    assert read_previous(tmp_path) == (DIGESTS[0],)


@pytest.mark.parametrize("previous", ['"x"', "7", "[7]", '["../../x"]', "{}x", "null"])
def test_a_history_that_is_none_is_refused_by_its_name_and_can_be_written_over(tmp_path: Path, previous: str) -> None:
    (tmp_path / "latest.json").write_text(f'{{"digest": "{DIGESTS[0]}", "previous": {previous}}}')
    with pytest.raises(ArtifactError, match=rf"{tmp_path.name}/latest\.json"):
        read_previous(tmp_path)
    point(tmp_path / DIGESTS[1])
    assert pointer(tmp_path) == {"digest": DIGESTS[1]}


def test_a_folder_that_is_there_keeps_its_mode_where_it_is_only_held(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    (tmp_path / ".staging-killed").mkdir()
    with held(tmp_path):
        assert list(tmp_path.iterdir()) == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750
    with exclusive(tmp_path / "new"):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o755
