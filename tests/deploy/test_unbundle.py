"""A bundle is put into a dist at once or not at all, and nothing in it is believed."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo_artifact.errors import ArtifactError, ConfigError, OctavoError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_artifact.manifest import fingerprint, manifest_bytes, read_pointer
from octavo_deploy import unbundle as module
from octavo_deploy.archive import END, Contents, contents_bytes, header
from octavo_deploy.bundle import write_bundle
from octavo_deploy.unbundle import unbundle
from octavo_serve.cli import main
from releasing import FILES, REMOTE, SPEC, manifest_of, released, tree
from running import OCTAVO

CODEC = pa.Codec("zstd", 3)


def bundled(artifact: Path, *, with_encoder: bool = True) -> bytes:
    target = io.BytesIO()
    write_bundle(artifact, target, with_encoder=with_encoder)
    return target.getvalue()


def unpacked(bundle: bytes) -> bytes:
    return pa.CompressedInputStream(pa.BufferReader(bundle), "zstd").read()


def packed(tar: bytes) -> bytes:
    return CODEC.compress(tar, asbytes=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """A header and a content, whatever they are."""

    header: bytes
    content: bytes = b""


def entries(tar: bytes) -> list[Entry]:
    found: list[Entry] = []
    place = 0
    while tar[place : place + 512] != bytes(512):
        size = tarfile.TarInfo.frombuf(tar[place : place + 512], "ascii", "strict").size
        end = place + 512 + size
        found.append(Entry(tar[place : place + 512], tar[place + 512 : end]))
        place = end + -size % 512
    return found


def tar_of(found: list[Entry]) -> bytes:
    return b"".join(each.header + each.content + bytes(-len(each.content) % 512) for each in found) + END


def named(name: str, content: bytes) -> Entry:
    return Entry(header(name, len(content)), content)


def of_type(kind: bytes, name: str, link: str = "", content: bytes = b"") -> Entry:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, link, len(content)
    return Entry(entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")[-512:], content)


@dataclass(frozen=True, slots=True)
class Place:
    """A bundle, the release in it, and a dist where nothing is yet."""

    artifact: Path
    bundle: bytes
    dist: Path

    def take(self, bundle: bytes | None = None, **options: bool | str) -> module.Unbundled:
        return unbundle(io.BytesIO(self.bundle if bundle is None else bundle), self.dist, **options)  # type: ignore[arg-type]

    @property
    def encoder(self) -> Path:
        return self.dist / "encoders" / fingerprint(SPEC)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    artifact = released(tmp_path / "from")
    return Place(artifact, bundled(artifact), tmp_path / "to")


def test_all_is_there_and_current(place: Place) -> None:
    done = place.take()
    assert (done.wrote_release, done.wrote_encoder) == (True, True)
    assert tree(place.dist) == tree(place.artifact.parents[1])


def written(dist: Path) -> dict[Path, tuple[int, int]]:
    """By file: which one it is, and when it was written."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in dist.rglob("*") if path.is_file()}


def test_a_second_time_changes_nothing(place: Place) -> None:
    place.take()
    before = written(place.dist)
    done = place.take()
    assert (done.wrote_release, done.wrote_encoder) == (False, False)
    assert written(place.dist) == before


def test_the_pointer_may_stay(place: Place) -> None:
    old = released(place.dist, version="0")
    place.take(make_current=False)
    assert read_pointer(place.dist / "p") == old.name
    assert main(["verify", str(place.dist / "p" / place.artifact.name)]) == 0
    place.take()
    assert json.loads((place.dist / "p/latest.json").read_bytes()) == {
        "digest": place.artifact.name,
        "previous": [old.name],
    }


def test_what_is_damaged_is_replaced(place: Place) -> None:
    place.take()
    (place.dist / "p" / place.artifact.name / "documents.parquet").write_bytes(b"damage")
    (place.encoder / "model.onnx").unlink()
    done = place.take()
    assert (done.wrote_release, done.wrote_encoder) == (True, True)
    assert tree(place.dist) == tree(place.artifact.parents[1])


def test_an_encoder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    artifact = released(tmp_path / "from", spec=REMOTE)
    dist = tmp_path / "to"
    unbundle(io.BytesIO(bundled(artifact)), dist)
    address = dist / "encoders" / fingerprint(REMOTE) / "endpoint.json"
    moved = canonical_json({"url": "http://127.0.0.1:10/v1", "key_env": "", "send_dimensions": False})
    address.write_bytes(moved)
    assert not unbundle(io.BytesIO(bundled(artifact)), dist).wrote_encoder
    assert address.read_bytes() == moved
    address.unlink()
    assert unbundle(io.BytesIO(bundled(artifact)), dist).wrote_encoder


def test_a_bundle_without_its_encoder_needs_it_in_the_dist(place: Place) -> None:
    bundle = bundled(place.artifact, with_encoder=False)
    with pytest.raises(ArtifactError, match=rf"without encoders/{fingerprint(SPEC)}, which to has not either"):
        place.take(bundle)
    assert tree(place.dist) == {}
    shutil.copytree(place.artifact.parents[1] / "encoders", place.dist / "encoders")
    assert place.take(bundle).wrote_release


@pytest.mark.parametrize("length", [12, 20, 64])
def test_the_digest_may_be_expected(place: Place, length: int) -> None:
    assert place.take(expect=place.artifact.name[:length]).digest == place.artifact.name
    with pytest.raises(ConfigError, match=rf"holds p {place.artifact.name}, expected {'0' * length}"):
        place.take(expect="0" * length)


def test_another_release_than_expected_is_exit_2_and_makes_no_folder(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(place.bundle)
    for expected in ("0" * 64, "abc"):
        assert main(["unbundle", str(tmp_path / "file"), str(place.dist), "--expect", expected]) == 2
        assert f"expected {'the first 12' if expected == 'abc' else expected}" in capsys.readouterr().err
    assert not place.dist.exists()


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_modes_do_not_depend_on_the_umask(place: Place, tmp_path: Path, umask: int) -> None:
    """B50."""
    (tmp_path / "file").write_bytes(place.bundle)
    command = [str(OCTAVO), "unbundle", str(tmp_path / "file"), str(place.dist)]
    subprocess.run(command, check=True, capture_output=True, umask=umask, timeout=60)
    for path in [place.dist, *place.dist.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_the_mode_of_a_dist_that_is_there_is_the_operators(place: Place) -> None:
    place.dist.mkdir()
    place.dist.chmod(0o750)
    place.take()
    assert stat.S_IMODE(place.dist.stat().st_mode) == 0o750


def test_what_a_killed_one_left_is_swept(place: Place) -> None:
    (place.dist / ".staging-killed/release").mkdir(parents=True)
    place.take()
    assert sorted(path.name for path in place.dist.iterdir()) == ["encoders", "p"]


# --- what is not believed


def changed(number: int, content: bytes) -> Callable[[list[Entry]], list[Entry]]:
    """The content of an entry is another one, and its header is right."""

    def change(found: list[Entry]) -> list[Entry]:
        name = tarfile.TarInfo.frombuf(found[number].header, "ascii", "strict").name
        return [*found[:number], named(name, content), *found[number + 1 :]]

    return change


def inserted(number: int, entry: Entry) -> Callable[[list[Entry]], list[Entry]]:
    return lambda found: [*found[:number], entry, *found[number:]]


def replaced(number: int, entry: Entry) -> Callable[[list[Entry]], list[Entry]]:
    return lambda found: [*found[:number], entry, *found[number + 1 :]]


HOSTILE: dict[str, tuple[Callable[[list[Entry]], list[Entry]], str]] = {
    "a symbolic link": (replaced(2, of_type(tarfile.SYMTYPE, "p/link", "/etc")), r"'p/link', a symbolic link"),
    "a hard link": (inserted(3, of_type(tarfile.LNKTYPE, "p/x", "../../y")), r"'p/x', a hard link, expected p/"),
    "a device": (inserted(4, of_type(tarfile.CHRTYPE, "null")), r"found 'null', a device"),
    "a pipe": (inserted(4, of_type(tarfile.FIFOTYPE, "pipe")), r"found 'pipe', a pipe"),
    "a directory": (inserted(2, of_type(tarfile.DIRTYPE, "p/")), r"found 'p/?', a directory"),
    "an absolute name": (inserted(2, named("/etc/passwd", b"x")), r"found '/etc/passwd', expected p/"),
    "a way out": (inserted(2, named("../../out", b"x")), r"found '\.\./\.\./out', expected p/"),
    "a way out at the end": (lambda found: [*found, named("../out", b"x")], r"found '\.\./out', expected its end"),
    "a file that is not named": (inserted(3, named("p/extra", b"x")), r"found 'p/extra', expected p/"),
    "a file twice": (lambda found: [*found[:4], found[3], *found[4:]], r"empty\.parquet|documents\.parquet"),
    "two files in the other order": (lambda f: [*f[:3], f[4], f[3], *f[5:]], r"lexical/\.managed\.json', expected"),
    "a file less": (lambda found: found[:3] + found[4:], r"expected p/[0-9a-f]{64}/empty\.parquet"),
    "the encoder's last file less": (lambda found: found[:-1], r"found its end, expected .*tokenizer\.json"),
    "a file too long": (changed(2, b"x" * 9999), r"documents\.parquet: 9999 bytes, expected 1700"),
    "a file too short": (changed(2, b""), r"documents\.parquet: 0 bytes, expected 1700"),
    "another content": (changed(2, b"x" * 1700), r"documents\.parquet: sha256 is [0-9a-f]{64}, the manifest says"),
    "another model": (changed(-2, b"x" * 2100), r"encoders/[0-9a-f]{64}/model\.onnx: sha256 is not"),
    "another spec": (lambda f: changed(-3, f[-3].content.replace(b'"max_tokens":16', b'"max_tokens":17'))(f),
                     r"encoder\.json: fingerprint is"),
    "another manifest": (lambda found: changed(1, found[1].content + b" ")(found), r"manifest\.json: sha256 is"),
    "no contents": (lambda found: found[1:], r"found 'p/[0-9a-f]{64}/manifest\.json', expected bundle\.json"),
    "contents of anything": (changed(0, b"{}"), r"bundle\.json: not that of a bundle"),
    "contents without end": (changed(0, b" " * 65537), r"bundle\.json: 65537 bytes, expected 65536 at most"),
    "an extended header": (inserted(0, of_type(tarfile.XHDTYPE, "h", content=b"x" * 99)), r"an extension of tar"),
    "a long name of GNU": (inserted(2, of_type(tarfile.GNUTYPE_LONGNAME, "h", content=b"x" * 99)), r"an extension of"),
    "no header": (inserted(2, Entry(b"x" * 512)), r"found no header of tar, expected p/"),
    "an early end": (inserted(2, Entry(bytes(1024))), r"found its end, expected p/"),
}  # fmt: skip


@pytest.mark.parametrize("attack", HOSTILE)
def test_what_was_not_expected_is_refused_by_its_name_and_leaves_nothing(place: Place, attack: str) -> None:
    change, message = HOSTILE[attack]
    place.dist.mkdir()
    before = tree(place.dist.parent)
    with pytest.raises(ArtifactError, match=message):
        place.take(packed(tar_of(change(entries(unpacked(place.bundle))))))
    assert tree(place.dist.parent) == before


def test_the_bytes_of_a_bundle_are_put_together_rightly_here(place: Place) -> None:
    """The control of the attacks."""
    assert tar_of(entries(unpacked(place.bundle))) == unpacked(place.bundle)
    assert place.take(packed(unpacked(place.bundle))).wrote_release


def test_a_header_that_says_more_than_name_and_size_is_refused(place: Place) -> None:
    found = entries(unpacked(place.bundle))
    entry = tarfile.TarInfo.frombuf(found[2].header, "ascii", "strict")
    entry.mode = 0o4755
    strange = [*found[:2], Entry(entry.tobuf(tarfile.USTAR_FORMAT), found[2].content), *found[3:]]
    with pytest.raises(ArtifactError, match=r"found 'p/.*documents\.parquet', expected p/.*documents\.parquet"):
        place.take(packed(tar_of(strange)))


def hand_made(files: dict[str, bytes], slug: str = "p") -> bytes:
    """A bundle of any manifest, right in all its hashes."""
    data = manifest_bytes(manifest_of(files, slug))
    right = Contents(slug, sha256_hex(data), fingerprint(SPEC), {})
    found = [named("bundle.json", contents_bytes(right)), named(f"{right.release}/manifest.json", data)]
    return packed(tar_of(found + [named(f"{right.release}/{path}", files[path]) for path in sorted(files)]))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"a": b"1", "a/b": b"2"}, "names 'a', expected another name", id="a file in a file"),
        pytest.param({"manifest.json": b"x"}, "names 'manifest.json', expected", id="itself"),
        pytest.param({"../a": b"x"}, "'../a' is not a path inside the artifact", id="a way out"),
        pytest.param({"/a": b"x"}, "'/a' is not a path inside the artifact", id="absolute"),
    ],
)
def test_a_manifest_that_names_what_cannot_be_is_refused(place: Place, files: dict[str, bytes], message: str) -> None:
    shutil.copytree(place.artifact.parents[1] / "encoders", place.dist / "encoders")
    before = tree(place.dist.parent)
    with pytest.raises(ArtifactError, match=message):
        place.take(hand_made(files))
    assert tree(place.dist.parent) == before


def test_a_pack_that_is_called_as_the_folder_of_encoders_is_refused(place: Place) -> None:
    with pytest.raises(ArtifactError, match=r"bundle\.json: not that of a bundle"):
        place.take(hand_made({}, "encoders"))


@pytest.mark.parametrize("change", [b'"size":-1', b'"size":"1"', b'"size":1.5', b'"size":null'])
def test_a_size_that_is_none_is_refused(place: Place, change: bytes) -> None:
    data = re.sub(rb'"size":1700', change, manifest_bytes(manifest_of(FILES)))
    right = Contents("p", sha256_hex(data), fingerprint(SPEC), {})
    found = [named("bundle.json", contents_bytes(right)), named(f"{right.release}/manifest.json", data)]
    with pytest.raises(ArtifactError, match=r"manifest\.json: a size is .*, expected a whole number"):
        place.take(packed(tar_of(found)))


def test_what_the_disk_has_no_room_for_is_refused_before_a_byte_is_written(place: Place) -> None:
    """A bundle of kilobytes may say that it becomes petabytes."""
    data = re.sub(rb'"size":1700', b'"size":%d' % 10**16, manifest_bytes(manifest_of(FILES)))
    right = Contents("p", sha256_hex(data), fingerprint(SPEC), {"encoder.json": 1, "model.onnx": 10**15})
    found = [named("bundle.json", contents_bytes(right)), named(f"{right.release}/manifest.json", data)]
    with pytest.raises(ConfigError, match=r"needs 1100000000000\d+ bytes, the disk has \d+"):
        place.take(packed(tar_of(found)))
    assert tree(place.dist) == {}


NO_BUNDLE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut in a frame": (lambda data: data[: len(data) // 2], r"cut short at"),
    "cut in its end": (lambda data: packed(unpacked(data)[:-700]), "cut short at its end"),
    "cut in a file": (lambda data: packed(unpacked(data)[:3000]), r"cut short at \S+manifest.json"),
    "empty": (lambda data: b"", "cut short at its beginning"),
    "no zstd": (lambda data: b"hello, world" * 99, "not zstd"),
    "tar alone": (unpacked, "not zstd"),
    "bytes behind it": (lambda data: data + b"x", "not zstd"),
    "a frame behind it": (lambda data: data + packed(b"x"), "bytes behind its end"),
    "zeros behind it": (lambda data: data + packed(bytes(512)), "bytes behind its end"),
    "no tar": (lambda data: packed(b"hello" * 999), "found no header of tar"),
}


@pytest.mark.parametrize("damage", NO_BUNDLE)
def test_what_is_no_bundle_is_one_clear_line(place: Place, damage: str) -> None:
    bundle, message = NO_BUNDLE[damage]
    with pytest.raises(ArtifactError, match=message):
        place.take(bundle(place.bundle))
    assert not place.dist.exists() or tree(place.dist) == {}


@pytest.mark.parametrize("arguments", [["nowhere", "to"], ["from", "to"], ["file", "file"], ["file", "file/below"]])
def test_what_cannot_be_read_or_written_is_exit_2(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(place.dist.parent)
    Path("file").write_bytes(place.bundle)
    assert main(["unbundle", *arguments]) == 2
    assert re.search("cannot be (read|written) ", capsys.readouterr().err)


def test_a_dist_that_somebody_else_holds_is_waited_for(place: Place) -> None:
    import fcntl

    place.dist.mkdir()
    handle = os.open(place.dist, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    command = [str(OCTAVO), "unbundle", "-", str(place.dist)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waiting:
        assert waiting.stdin is not None
        waiting.stdin.write(place.bundle)
        waiting.stdin.close()
        assert tree(place.dist) == {}
        os.close(handle)
        assert waiting.wait(60) == 0
    assert tree(place.dist) == tree(place.artifact.parents[1])


# --- whatever it is


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("fuzz")
    artifact = released(root / "from")
    return Place(artifact, bundled(artifact), root / "to")


def outcome(place: Place, bundle: bytes) -> None:
    """The release is there, or the bundle is refused; nothing else has changed."""
    shutil.rmtree(place.dist, ignore_errors=True)
    before = tree(place.dist.parent)
    try:
        place.take(bundle)
    except OctavoError:
        shutil.rmtree(place.dist, ignore_errors=True)
        assert tree(place.dist.parent) == before
    else:
        wanted = {path for path in tree(place.dist) if not path.startswith("encoders")}
        source = {path for path in tree(place.artifact.parents[1]) if not path.startswith("encoders")}
        assert wanted == source
        assert main(["verify", str(place.dist)]) == 0


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_bundle_with_other_bytes_is_refused_or_the_same(shared_place: Place, data: st.DataObject) -> None:
    tar = bytearray(unpacked(shared_place.bundle))
    starts = [0, *(match.start() - 257 for match in re.finditer(b"ustar", tar))]
    for _ in range(data.draw(st.integers(1, 3))):
        # most in headers, where names, types and sizes are
        at = data.draw(st.one_of(st.sampled_from(starts).flatmap(lambda start: st.integers(start, start + 511)),
                                 st.integers(0, len(tar) - 1)))  # fmt: skip
        tar[at : at + 1] = data.draw(st.binary(min_size=1, max_size=4))
        del tar[len(tar) - (len(tar) % 512) :]
    outcome(shared_place, packed(bytes(tar)))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_bundle_with_other_entries_is_refused_or_the_same(shared_place: Place, data: st.DataObject) -> None:
    found = entries(unpacked(shared_place.bundle))
    kinds = st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.XHDTYPE])
    names = st.sampled_from(["/tmp/x", "../x", "p/../../x", ".", "", "p", f"p/{shared_place.artifact.name}/a", "\x7f"])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(found)))
        match data.draw(st.sampled_from(["insert", "drop", "repeat", "swap"])):
            case "insert":
                found.insert(at, of_type(data.draw(kinds), data.draw(names), data.draw(names), data.draw(st.binary())))
            case "drop" if at < len(found):
                del found[at]
            case "repeat" if at < len(found):
                found.insert(at, found[at])
            case _ if at + 1 < len(found):
                found[at], found[at + 1] = found[at + 1], found[at]
            case _:
                pass
    outcome(shared_place, packed(tar_of(found)))


@settings(max_examples=100, deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), cut=st.booleans())
def test_a_damaged_file_is_refused_or_the_same(shared_place: Place, at: float, bits: int, cut: bool) -> None:
    bundle = bytearray(shared_place.bundle)
    place = int(at * len(bundle))
    bundle[place] ^= bits
    outcome(shared_place, bytes(bundle[:place] if cut else bundle))
