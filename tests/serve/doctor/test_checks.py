"""Each check sees what it looks for, says what was expected, and what to do next."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from models import endpoint, model_folder
from octavo_serve.answering.settings import AnswerSettings, ModelSettings, RetrieverSettings
from octavo_serve.callers.keys import Key
from octavo_serve.cli import main
from octavo_serve.doctor import checks, configuring, listening, machine, releases
from octavo_serve.doctor.checks import CHECKS, diagnose
from octavo_serve.doctor.finding import Check, Finding, Subject
from octavo_serve.settings import RerankerSettings, ServerSettings
from running import octavo


def subject(dist: Path | None = None, **settings: object) -> Subject:
    made = ServerSettings(dist=dist, **settings)  # type: ignore[arg-type]
    return Subject(made, {"PATH": "/bin"}, releases.examine_packs(dist))


def one(check: Check, examined: Subject) -> Finding:
    (finding,) = check(examined)
    assert (finding.status == "ok") == (finding.expected is None) == (finding.step is None)
    return finding


def statuses(check: Check, examined: Subject) -> list[str]:
    return [finding.status for finding in check(examined)]


def test_a_sound_server_has_no_failure(built: Path) -> None:
    found = list(diagnose(None, {}, {"dist": built}))
    assert [finding for finding in found if finding.status == "fail"] == []
    said = {finding.check: finding.found for finding in found}
    assert said["dist"] == f"{built}: notes, tiny"
    assert said["pack"].startswith("tiny ")
    assert said["encoder"].endswith(": 384 dimensions")
    assert said["search"] == "tiny answers"


def test_every_check_of_the_modules_is_in_the_list() -> None:
    there = {
        function
        for module in (machine, releases, configuring, listening)
        for function in vars(module).values()
        if getattr(function, "__annotations__", {}).get("return") == "Iterator[Finding]"
        and not function.__name__.startswith("_")
    }
    assert there == set(CHECKS)


def test_a_server_that_asks_another_for_passages_needs_no_releases() -> None:
    model = ModelSettings("http://127.0.0.1:1/v1")
    assert one(releases.dist, subject(answers=AnswerSettings(model))).status == "fail"
    remote = AnswerSettings(model, RetrieverSettings("http://127.0.0.1:1/mcp"))
    assert one(releases.dist, subject(answers=remote)).status == "ok"


# --- the machine


def test_other_versions_than_those_of_the_build_are_told(built: Path) -> None:
    examined = subject(built)
    assert one(machine.libraries, examined).status == "ok"
    pack = examined.packs[0]
    assert pack.manifest
    other = replace(pack, manifest=replace(pack.manifest, libraries={"tantivy": "0.1", "pylance": "0.1"}))
    finding = one(machine.libraries, replace(examined, packs=(other,)))
    assert finding.status == "warn"
    assert finding.found == "tantivy 0.27.0 (notes was built with 0.1)"


def test_a_processor_without_avx2_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(machine.processor, subject()).status == "ok"
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("pyarrow.runtime_info", lambda: SimpleNamespace(detected_simd_level="avx"))
    assert one(machine.processor, subject()).status == "warn"


def test_a_library_that_does_not_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert one(machine.processor, subject()).found.startswith("onnxruntime does not load (")


def test_a_temporary_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert one(machine.temporary_folder, replace(subject(), environment={"TMPDIR": str(tmp_path)})).status == "ok"
    assert list(tmp_path.iterdir()) == []
    finding = one(machine.temporary_folder, replace(subject(), environment={"TMPDIR": str(tmp_path / "none")}))
    assert (finding.status, finding.found) == (
        "fail",
        f"{tmp_path / 'none'} cannot be written (No such file or directory)",
    )


@pytest.mark.parametrize(("limit", "status"), [(256, "warn"), (1024, "ok"), (-1, "ok")])
def test_few_files_are_told(monkeypatch: pytest.MonkeyPatch, limit: int, status: str) -> None:
    def limited(resource: int) -> tuple[int, int]:
        return limit, -1

    monkeypatch.setattr("resource.getrlimit", limited)
    assert one(machine.descriptors, subject()).status == status


def test_a_pointer_from_the_future_is_told(dist: Path) -> None:
    assert one(machine.clock, subject(dist)).status == "ok"
    os.utime(dist / "tiny/latest.json", (4_102_444_800, 4_102_444_800))
    finding = one(machine.clock, subject(dist))
    assert finding.status == "warn"
    assert finding.found.endswith("a pointer was written on 2100-01-01")


# --- the packs


@pytest.mark.parametrize(
    ("path", "found"),
    [("none", "No such file or directory"), ("tiny/latest.json", "Not a directory"), ("encoders", "no pack")],
)
def test_a_dist_that_is_none_is_told(built: Path, path: str, found: str) -> None:
    finding = one(releases.dist, subject(built / path))
    assert (finding.status, finding.found) == ("fail", f"{built / path}: {found}")
    assert one(releases.dist, subject()).found == "none is named"


def test_a_damaged_pack_is_told_by_its_file_and_the_others_are_fine(dist: Path) -> None:
    artifact = dist / "tiny" / json.loads((dist / "tiny/latest.json").read_bytes())["digest"]
    (artifact / "passages.parquet").write_bytes(b"damage")
    notes, tiny = releases.packs(subject(dist))
    assert (notes.status, tiny.status) == ("ok", "fail")
    assert tiny.found.startswith(f"tiny: tiny/{artifact.name[:12]}/passages.parquet: 6 bytes")
    assert [finding.found for finding in releases.indexes(subject(dist))] == ["notes answers"]


def test_an_index_that_does_not_open_is_told(dist: Path) -> None:
    examined = subject(dist)
    for meta in dist.glob("tiny/*/lexical/meta.json"):
        meta.write_text("{}")
    notes, tiny = releases.indexes(examined)
    assert (notes.status, tiny.status) == ("ok", "fail")
    assert tiny.found.startswith("tiny: tiny/")


def test_an_encoder_that_is_missing_or_damaged_is_told(dist: Path) -> None:
    (encoder,) = (dist / "encoders").iterdir()
    (encoder / "model.onnx").write_bytes(b"no model")
    finding = one(releases.encoders, subject(dist))
    assert finding.status == "fail"
    assert finding.found.startswith(f"encoders/{encoder.name}/model.onnx: sha256 is not")
    assert statuses(releases.encoders, subject(dist, lexical_only=True)) == ["warn"]


def test_an_endpoint_that_is_down_is_told(tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea/tea.md").write_text("# Tea\n\nBlack tea steeps.\n")
    with endpoint() as remote:
        chosen = f"openai:{remote.url}#small"
        done = octavo("build", "tea", "--out", "dist", "--state", "state", "-q", "--encoder", chosen, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert one(releases.encoders, subject(tmp_path / "dist")).status == "ok"
        remote.down = True
        finding = one(releases.encoders, subject(tmp_path / "dist"))
        assert (finding.status, finding.found) == ("fail", "encoder small: the endpoint answered 503")


def test_what_a_killed_build_left_is_told(dist: Path) -> None:
    assert list(releases.leftovers(subject(dist))) == []
    for name in (".staging-a", "tiny/.staging-b", "encoders/.staging-c"):
        (dist / name).mkdir()
    assert one(releases.leftovers, subject(dist)).found == ".staging-a, encoders/.staging-c, tiny/.staging-b"


def test_a_disk_without_room_for_the_next_release_is_told(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(releases.space, subject(built)).status == "ok"

    def full(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=10)

    monkeypatch.setattr("shutil.disk_usage", full)
    finding = one(releases.space, subject(built))
    assert finding.status == "warn"
    assert finding.found.startswith("10 bytes are free, the release of ")


def test_a_dist_that_the_server_may_write_is_told(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(releases.writable, subject(built)).status == "warn"

    def denied(path: Path, mode: int) -> bool:
        return False

    monkeypatch.setattr("os.access", denied)
    assert one(releases.writable, subject(built)).status == "ok"


# --- the configuration


def test_a_key_for_a_pack_that_is_not_there_is_told(built: Path) -> None:
    keys = (Key("a", "0" * 64, ("tiny", "gone")), Key("b", "1" * 64, ("*",)))
    warned, counted = configuring.keys(subject(built, keys=keys))
    assert (warned.status, warned.found) == ("warn", "key a is for gone, which the dist has not")
    assert (counted.status, counted.found) == ("ok", "2 may ask")
    assert list(configuring.keys(subject(built))) == []


def test_a_pack_that_is_withheld_is_told(built: Path) -> None:
    examined = subject(built)
    assert list(configuring.audience(examined)) == []
    pack = examined.packs[0]
    assert pack.manifest
    private = replace(pack, manifest=replace(pack.manifest, pack={**pack.manifest.pack, "audience": "family"}))
    finding = one(configuring.audience, replace(examined, packs=(private,)))
    assert (finding.status, finding.found) == ("warn", "notes is for family and withheld from public")
    wide = ServerSettings(audience="self")
    assert list(configuring.audience(replace(examined, packs=(private,), settings=wide))) == []


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        ("https://a.example", False),
        ("http://localhost:3000", False),
        ("http://[::1]", False),
        ("http://a.example", True),
    ],
)
def test_an_origin_without_tls_is_told(origin: str, told: bool) -> None:
    assert statuses(configuring.origins, subject(allowed_origins=(origin,))) == ["warn"] * told


def test_a_reranker_that_is_none_is_told(tmp_path: Path) -> None:
    finding = one(configuring.reranker, subject(reranker=RerankerSettings(path=tmp_path)))
    assert finding.status == "fail"
    assert "reranker: " in finding.found
    finding = one(configuring.reranker, subject(reranker=RerankerSettings(url="http://127.0.0.1:9/v1")))
    assert (finding.status, finding.found.startswith("http://127.0.0.1:9/v1 gave no scores (")) == ("warn", True)
    assert list(configuring.reranker(subject())) == []


def test_each_source_is_told_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "octavo.yaml"
    file.write_text("prot: 1")
    settings, (first, second) = configuring.read_configuration(file, {"OCTAVO_PORT": "x"}, {"dist": tmp_path})
    assert settings == ServerSettings(dist=tmp_path)
    assert (first.check, first.status, second.check, second.status) == ("config file", "fail", "variables", "fail")
    assert first.found.startswith(f"{file}: prot: unknown, expected perhaps port")
    assert second.found.startswith("OCTAVO_PORT: found 'x'")


def test_sources_that_do_not_go_together_are_told(tmp_path: Path) -> None:
    file = tmp_path / "octavo.yaml"
    file.write_text("reranker: {path: a, milliseconds: 5000}")
    variables = {"OCTAVO_CONFIG": str(file), "OCTAVO_ANSWER_TIMEOUT": "1"}
    settings, findings = configuring.read_configuration(None, variables, {})
    assert [finding.status for finding in findings] == ["ok", "ok", "fail"]
    assert "milliseconds 5000, expected less than answer_timeout" in findings[-1].found
    assert settings == ServerSettings()


# --- the address


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finding = one(listening.port, subject(port=taken.getsockname()[1]))
        assert (finding.status, "Address already in use" in finding.found) == ("fail", True)
    assert one(listening.port, subject(port=0)).status == "ok"
    assert one(listening.port, subject(host="192.0.2.1")).status == "fail"


@pytest.mark.parametrize(
    ("settings", "hosts", "public"),
    [
        pytest.param({}, "ok", "ok", id="loopback"),
        pytest.param({"host": "::1"}, "ok", "ok", id="loopback of IPv6"),
        pytest.param({"host": "localhost"}, "ok", "ok", id="localhost"),
        pytest.param({"host": "0.0.0.0"}, "warn", "warn", id="everywhere"),
        pytest.param({"host": "::", "allowed_hosts": ("kb.example.org",)}, "ok", "warn", id="by name"),
        pytest.param({"host": "10.0.0.7", "keys": (Key("a", "0" * 64, ("*",)),)}, "ok", "ok", id="by keys"),
    ],
)
def test_who_can_reach_the_server_is_told(settings: dict[str, object], hosts: str, public: str) -> None:
    assert one(listening.hosts, subject(**settings)).status == hosts  # type: ignore[arg-type]
    assert one(listening.public, subject(**settings)).status == public  # type: ignore[arg-type]


# --- the command


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main(["doctor", *map(str, arguments)])
    said = capsys.readouterr()
    assert said.err == ""
    return code, said.out


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of whoever runs the tests, and a port that is free."""
    for name in os.environ:
        if name.startswith("OCTAVO_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OCTAVO_PORT", "0")


def test_a_line_a_check_with_found_expected_and_next(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (dist / "tiny/latest.json").write_text("{}")
    code, said = run(capsys, dist)
    assert code == 1
    (line,) = (line for line in said.splitlines() if line.startswith("fail"))
    assert line == (
        "fail  pack             tiny: tiny/latest.json: not a pointer, expected a JSON object with a digest; "
        "expected the files of the manifest; next: `octavo rollback tiny`, or bring the release again"
    )
    assert "\x1b" not in said


def test_exit_codes_say_who_must_act(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, built)[0] == 0
    assert run(capsys, tmp_path)[0] == 1
    (tmp_path / "octavo.yaml").write_text("prot: 1")
    assert run(capsys, built, "--config", tmp_path / "octavo.yaml")[0] == 2
    assert run(capsys, built, "--config", tmp_path / "none.yaml")[0] == 2


def test_json_has_every_finding(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = run(capsys, built, "--json")
    findings = json.loads(said)["findings"]
    assert {"config file", "versions", "pack", "encoder", "search", "port"} <= {each["check"] for each in findings}
    assert all(each.keys() == {"check", "status", "found", "expected", "step"} for each in findings)


def test_a_check_that_fails_itself_does_not_stop_the_others(
    built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_check(subject: Subject) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr(checks, "CHECKS", (broken_check, *CHECKS))
    code, said = run(capsys, built)
    assert code == 1
    assert "fail  broken check     the check failed itself (RuntimeError: oh)" in said
    assert "ok    pack " in said


def test_nothing_is_changed_and_no_secret_is_told(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "octavo_" + "s3cret-" * 6 + "x"
    (tmp_path / "octavo.yaml").write_text(f"keys: [{{name: {secret}, sha256: {secret}, packs: '*'}}]")
    before = {path: path.stat() for path in built.rglob("*")}
    _, said = run(capsys, built, "--config", tmp_path / "octavo.yaml")
    assert "s3cret" not in said
    assert {path: path.stat() for path in built.rglob("*")} == before


@pytest.mark.slow
def test_a_model_of_any_size_is_tried(tmp_path: Path) -> None:
    """The encoder that is tried is that of the release, not the default one."""
    model_folder(tmp_path / "small", 8)
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea/tea.md").write_text("# Tea\n\nBlack tea steeps.\n")
    done = octavo("build", "tea", "--out", "dist", "--state", "state", "-q", "--encoder", "path:small", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert one(releases.encoders, subject(tmp_path / "dist")).found.endswith(": 8 dimensions")
