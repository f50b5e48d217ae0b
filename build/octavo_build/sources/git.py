"""A pack whose documents lie in a git repository, at one commit: `source` in its `pack.yaml`.

    source:
      git: https://example.org/pumps.git
      commit: 9fceb02d0ae598e95dc970b74767f19372d61af8
      path: docs

A commit's hash says all of its content, so what was fetched once is never fetched again. git runs without anybody's
settings: no hooks, filters, submodules or prompts, so that the same commit gives the same bytes everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_build.sources.identity import PACK_FILE, read_identity
from octavo_build.values import mapping

PROTOCOLS = ("https", "ssh", "file")
TIME_LIMIT = 900
"""Seconds that git may take for a fetch, or to write its files."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_KEPT = ("HOME", "PATH", "SSH_AUTH_SOCK", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR")
"""Environment that git needs to find itself, keys and certificates; `*_proxy` besides."""
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = {
    "core.attributesFile": os.devnull,
    "core.hooksPath": os.devnull,
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",
}
_URL = re.compile(r"[a-z]+://[^\s'\"]*")
_COMPLAINT = re.compile(r"^(?:fatal|error): (.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GitSource:
    """A folder of a commit."""

    url: str
    """As written, with what it may hold of credentials: for git alone."""
    commit: str
    path: str
    """Of the folder; empty for the repository's own."""

    @property
    def shown(self) -> dict[str, str]:
        """The source as it may be told, and as a release records it."""
        parts = urlsplit(self.url)
        bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        return {"git": bare, "commit": self.commit, **({"path": self.path} if self.path else {})}


def git_source(pack: str, metadata: Mapping[str, Any]) -> GitSource | None:
    """The source that the pack `pack` names in its `pack.yaml`; None when it is the pack's own folder.

    Raises ConfigError when it cannot be meant.
    """
    written = metadata.get("source")
    if written is None:
        return None
    fields = mapping(written)
    url, commit, path = (fields.get(key) or "" for key in ("git", "commit", "path"))
    where = f"{pack}/{PACK_FILE}: source"
    if not (isinstance(url, str) and _is_url(url)):
        raise ConfigError(f"{where}: git: expected a URL of {', '.join(PROTOCOLS)}")
    if not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        raise ConfigError(f"{where}: commit: found {commit!r}, expected 40 hexadecimal digits (no branch, no tag)")
    if not (isinstance(path, str) and _is_inside(path)):
        raise ConfigError(f"{where}: path: found {path!r}, expected a folder of the repository")
    folder = str(PurePosixPath(path))
    return GitSource(url, commit, "" if folder == "." else folder)


def located(root: Path, state: Path) -> Path:
    """The folder to read for the pack in `root`: itself, or what its source holds, with the pack's own `pack.yaml`.

    What is fetched is kept below `state`. Raises ConfigError when it cannot be had.
    """
    source = git_source(root.resolve().name, read_identity(root).metadata) if (root / PACK_FILE).is_file() else None
    if source is None:
        return root
    own = (root / PACK_FILE).read_bytes()
    name = root.resolve().name
    store = state.resolve() / "sources" / source.commit
    key = sha256_hex(canonical_json([source.path, name, sha256_hex(own)]))[:32]
    folder = store / key / name  # a pack without a slug goes by its folder's name
    if not folder.is_dir():
        repository = _fetched(source, store / "repository.git", name)
        with _made(store / key) as making:
            _write_files(source, repository, making / name, name)
            _put(making / name / PACK_FILE, own)
    return folder


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        return False
    named = not host if parts.scheme == "file" else bool(host) and not host.startswith("-")
    written = text.isprintable() and not re.search(r"[\s'\"]", text) and parts.path.strip("/")
    return parts.scheme in PROTOCOLS and named and bool(written)


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return path.isprintable() and not pure.is_absolute() and ".." not in pure.parts


def _fetched(source: GitSource, repository: Path, pack: str) -> Path:
    """A repository that has the commit and its files, without their history."""
    if not repository.is_dir():
        with _made(repository) as making:
            git = _Git(source, making, pack)
            git.run("init", "--quiet", "--bare", "--template=")
            git.run("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", source.url, source.commit)
            if git.run("cat-file", "-t", source.commit).strip() != "commit":
                raise git.error("the hash is not that of a commit")
    return repository


def _write_files(source: GitSource, repository: Path, folder: Path, pack: str) -> None:
    """Write the files of the source's folder below `folder`."""
    folder.mkdir()
    index = folder.parent / "index"
    git = _Git(source, repository, pack, {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}, folder)
    tree = f"{source.commit}:{source.path}"
    try:
        kind = git.run("cat-file", "-t", tree).strip()
    except ConfigError:
        kind = ""
    if kind != "tree":
        raise git.error(f"the commit has no folder {source.path!r}")
    git.run("read-tree", tree)
    git.run("checkout-index", "--quiet", "--all")
    index.unlink()


def _put(file: Path, data: bytes) -> None:
    """Write a file in the place of whatever is there; never through a link."""
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    file.unlink(missing_ok=True)
    file.write_bytes(data)


@contextmanager
def _made(target: Path) -> Generator[Path]:
    """A new folder beside `target` that takes its name when all went well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        yield making
        try:
            making.rename(target)
        except OSError:
            if not target.is_dir():  # else another build was quicker, and made the same
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Git:
    """git, on one repository, for one source."""

    source: GitSource
    repository: Path
    pack: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: Path | None = None

    def run(self, *arguments: str) -> str:
        """What git prints. Raises ConfigError when it fails, or takes too long."""
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.lower().endswith("_proxy")}
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        try:
            process = subprocess.Popen(
                ["git", *settings, *arguments],
                cwd=self.folder or self.repository,
                env={**kept, **_ENVIRONMENT, "GIT_DIR": str(self.repository), **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise self.error("git is not installed") from error
        try:
            printed, complaint = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired as error:
            raise self.error(f"git took longer than {TIME_LIMIT} seconds") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with the helpers that git started
                process.communicate()
        if process.returncode:
            found = _COMPLAINT.findall(complaint.decode("utf-8", "replace"))
            raise self.error(f"git {arguments[0]}: {found[-1] if found else f'exit code {process.returncode}'}")
        return printed.decode("utf-8", "replace")

    def error(self, reason: str) -> ConfigError:
        """What a person is told; git's own words may quote credentials and this machine's folders."""
        bare = self.source.shown["git"]
        reason = _URL.sub(bare, reason).replace(str(self.repository.parent), "")[:300]
        return ConfigError(f"{self.pack}/{PACK_FILE}: source: commit {self.source.commit[:12]} of {bare}: {reason}")
