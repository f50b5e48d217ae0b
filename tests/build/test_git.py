"""A pack whose documents lie in a git repository at one commit. The repositories are real, and local."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from octavo_artifact.errors import ConfigError
from octavo_build.sources import git as git_module
from octavo_build.sources import read, slug_of
from octavo_build.sources.git import git_source, located
from running import octavo

COMMIT = "0123456789" * 4
FIRST = {"README.md": "# First\n", "docs/a.md": "# A\n", "docs/deep/b.md": "# B\n"}


class Repository:
    """A repository on this machine, one commit at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "trunk")

    @property
    def url(self) -> str:
        return self.root.as_uri()

    def git(self, *arguments: str) -> str:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "protocol.file.allow=always")
        command = ["git", "-C", str(self.root), *who, *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: dict[str, str]) -> str:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "upstream")


def pack(root: Path, url: str, commit: str, path: str = "", more: str = "") -> Path:
    root.mkdir(exist_ok=True)
    where = f"  path: {path}\n" if path else ""
    (root / "pack.yaml").write_text(f"{more}source:\n  git: {url}\n  commit: {commit}\n{where}")
    return root


def documents(root: Path, state: Path) -> dict[str, str]:
    return {document.path: document.raw.decode() for document in read(located(root, state)).documents}


def test_a_pack_is_what_its_commit_holds_and_not_what_came_later(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit(FIRST)
    repository.commit({"README.md": "# Second\n"})
    assert documents(pack(tmp_path / "p", repository.url, first), tmp_path / "state") == FIRST


def test_a_pack_may_be_a_folder_of_the_repository_and_say_what_of_it(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({**FIRST, "docs/pack.yaml": "slug: theirs\n"})
    root = pack(tmp_path / "p", repository.url, commit, "docs", "slug: ours\nexclude: deep/\n")
    assert documents(root, tmp_path / "state") == {"a.md": "# A\n"}
    assert slug_of(located(root, tmp_path / "state")) == "ours"


def test_a_pack_without_a_slug_goes_by_its_folders_name(repository: Repository, tmp_path: Path) -> None:
    root = pack(tmp_path / "The Pumps", repository.url, repository.commit(FIRST))
    found = read(located(root, tmp_path / "state"))
    assert (found.slug, found.name) == ("the-pumps", "The Pumps")


def test_the_format_is_that_of_what_was_fetched(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({"manifest.yaml": "slug: x\nname: X\ntype: product\n", "overview.md": "x"})
    found = read(located(pack(tmp_path / "p", repository.url, commit), tmp_path / "state"))
    assert (found.source_format, found.slug, found.metadata["source"]["commit"]) == ("expertpack", "x", commit)


def test_what_was_fetched_is_never_fetched_again(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit(FIRST)
    root, state = pack(tmp_path / "p", repository.url, commit), tmp_path / "state"
    folder = located(root, state)
    repository.root.rename(tmp_path / "gone")
    assert located(root, state) == folder
    assert documents(pack(root, repository.url, commit, "docs"), state) == {"a.md": "# A\n", "deep/b.md": "# B\n"}
    with pytest.raises(ConfigError, match="git fetch"):
        located(root, tmp_path / "another state")


def test_a_fetch_that_failed_leaves_nothing_and_can_be_tried_again(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit(FIRST)
    root, state = pack(tmp_path / "p", repository.url, commit), tmp_path / "state"
    repository.root.rename(tmp_path / "away")
    with pytest.raises(ConfigError):
        located(root, state)
    assert not [path for path in state.rglob("*") if path.is_file()]
    (tmp_path / "away").rename(repository.root)
    assert documents(root, state) == FIRST


def test_nothing_but_the_files_of_the_commit_is_run_or_fetched(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the repository's nor the user's settings take part: filters, hooks, submodules, line ends."""
    other = Repository(tmp_path / "other")
    other.commit({"secret.md": "secret"})
    repository.git("submodule", "add", "-q", other.url, "module")
    commit = repository.commit({**FIRST, ".gitattributes": "*.md filter=evil\n"})
    ran = tmp_path / "ran"
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    hook = hooks / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    settings = f'[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n[filter "evil"]\n\tsmudge = touch {ran}; cat\n'
    (home / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "elsewhere"))
    assert documents(pack(tmp_path / "p", repository.url, commit), tmp_path / "state") == FIRST
    assert not ran.exists()


def test_a_link_in_the_repository_leads_nowhere_outside(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    repository.commit(FIRST)
    (repository.root / "out.md").symlink_to(tmp_path / "secret")
    (repository.root / "pack.yaml").symlink_to(tmp_path / "secret")
    commit = repository.commit({})
    found = read(located(pack(tmp_path / "p", repository.url, commit), tmp_path / "state"))
    assert [document.path for document in found.documents] == sorted(FIRST)
    assert [(f.path, f.code) for f in found.findings] == [("out.md", "symlink-escapes")]
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("x", "git: expected a URL", id="no mapping"),
        pytest.param({"commit": COMMIT}, "git: expected a URL", id="no repository"),
        pytest.param({"git": "http://example.org/x", "commit": COMMIT}, "git: expected a URL", id="in the clear"),
        pytest.param({"git": "ext::sh -c id", "commit": COMMIT}, "git: expected a URL", id="a command"),
        pytest.param({"git": "ssh://-oProxyCommand=id/x", "commit": COMMIT}, "git: expected a URL", id="an option"),
        pytest.param({"git": "--upload-pack=id", "commit": COMMIT}, "git: expected a URL", id="an argument"),
        pytest.param({"git": "/srv/x", "commit": COMMIT}, "git: expected a URL", id="a path"),
        pytest.param({"git": "https://[x/y", "commit": COMMIT}, "git: expected a URL", id="no address"),
        pytest.param({"git": "https://example.org/x"}, "commit: found ''", id="no commit"),
        pytest.param({"git": "https://example.org/x", "commit": "main"}, "commit: found 'main'", id="a branch"),
        pytest.param({"git": "https://example.org/x", "commit": COMMIT[:12]}, "40 hexadecimal", id="a short commit"),
        pytest.param({"git": "https://example.org/x", "commit": COMMIT, "path": "../x"}, "path: found", id="upwards"),
        pytest.param({"git": "https://example.org/x", "commit": COMMIT, "path": "/etc"}, "path: found", id="absolute"),
        pytest.param({"git": "https://example.org/x", "commit": COMMIT, "path": ["x"]}, "path: found", id="a list"),
    ],
)
def test_a_source_that_cannot_be_meant_is_refused_before_git_runs(source: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        git_source("p", {"source": source})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"commit": COMMIT}, "git fetch: ", id="unknown commit"),
        pytest.param({"path": "none"}, "the commit has no folder 'none'", id="no folder"),
        pytest.param({"path": "docs/a.md"}, "the commit has no folder 'docs/a.md'", id="a file"),
    ],
)
def test_what_a_repository_does_not_have_is_told(
    repository: Repository, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    source = {"url": repository.url, "commit": repository.commit(FIRST), **change}
    with pytest.raises(ConfigError, match=reason) as caught:
        located(pack(tmp_path / "p", **source), tmp_path / "state")
    assert str(tmp_path / "state") not in str(caught.value)


def test_a_tag_is_no_commit(repository: Repository, tmp_path: Path) -> None:
    repository.commit(FIRST)
    repository.git("tag", "-a", "-m", "x", "v1")
    tag = repository.git("rev-parse", "v1")
    with pytest.raises(ConfigError, match="not that of a commit"):
        located(pack(tmp_path / "p", repository.url, tag), tmp_path / "state")


def test_credentials_stay_out_of_messages_and_metadata(tmp_path: Path) -> None:
    url = "https://user:hunter2@127.0.0.1:1/pumps.git?token=hunter2"
    root = pack(tmp_path / "p", url, COMMIT)
    with pytest.raises(ConfigError, match=r"of https://127\.0\.0\.1:1/pumps\.git: git fetch: ") as caught:
        located(root, tmp_path / "state")
    assert "hunter2" not in str(caught.value)
    assert "user" not in str(caught.value)
    found = read(root)
    assert found.metadata["source"] == {"git": "https://127.0.0.1:1/pumps.git", "commit": COMMIT}


def test_a_git_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the helper that it waits for."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nsleep 600 | cat\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(git_module, "TIME_LIMIT", 0.2)
    with pytest.raises(ConfigError, match=r"took longer than 0\.2 seconds"):
        located(pack(tmp_path / "p", "https://example.org/x", COMMIT), tmp_path / "state")


def test_a_machine_without_git_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git is not installed"):
        located(pack(tmp_path / "p", "https://example.org/x", COMMIT), tmp_path / "state")


def test_lint_checks_what_the_commit_holds(repository: Repository, tmp_path: Path) -> None:
    root = pack(tmp_path / "p", repository.url, repository.commit({"bad.md": "---\na: b: c\n---\nx"}))
    done = octavo("lint", root, "--format=json", cwd=tmp_path)
    assert "bad.md" in done.stdout


def test_a_release_says_which_commit_it_is_of(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit(FIRST)
    root = pack(tmp_path / "p", repository.url, commit, "docs", "slug: pumps\n")
    places = ("--out", tmp_path / "dist", "--state", tmp_path / "state")
    first = octavo("build", root, *places, "--json")
    (released,) = json.loads(first.stdout)["packs"]
    manifest = json.loads((Path(released["artifact"]) / "manifest.json").read_bytes())
    assert manifest["pack"]["metadata"]["source"] == {"git": repository.url, "commit": commit, "path": "docs"}
    repository.root.rename(tmp_path / "gone")
    again = json.loads(octavo("build", root, *places, "--json").stdout)["packs"][0]
    assert again["digest"] == released["digest"]
