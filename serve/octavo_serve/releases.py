"""The live library of a server: which releases are served now, and what follows when `dist` changes.

A look at `dist` costs a few stats. What changed is opened and verified aside, then one assignment makes the new catalog
current; whoever holds the old one goes on with it, and its files are closed when nobody does. A release that cannot
be served never replaces one that is.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import signal
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from threading import Lock, current_thread, main_thread
from time import monotonic
from weakref import ref

import anyio
from anyio.to_thread import run_sync

from octavo_artifact.errors import ArtifactError, ConfigError, OctavoError
from octavo_artifact.ids import DIGEST, SLUG
from octavo_artifact.layout import ENCODERS, POINTER
from octavo_artifact.manifest import fingerprint, pack_directories, read_pointer
from octavo_artifact.schema import AUDIENCES
from octavo_serve.catalog import Catalog, OpenPack, Refusal, open_release
from octavo_serve.encoder import AbsentEncoder, Encoder
from octavo_serve.faces import Library
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from octavo_serve.search import NO_OPERATOR, Operator

_Print = tuple[int, ...]
"""Identity, size and times of a file or folder; empty for one that is not there."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Look:
    """In what a change of a pack's folder shows."""

    pointer: _Print
    folder: _Print
    needed: tuple[_Print, ...] = ()
    """Of all files that a refused release needs: it is tried again when it was mended, and not before."""


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The releases of one pack; none at all for a folder that is no pack's."""

    look: _Look = field(compare=False)
    current: OpenPack | None = None
    kept: tuple[OpenPack, ...] = ()
    """Those that were current before, the latest first."""
    mounted: tuple[OpenPack, ...] = ()
    """Those that the operator named."""
    refusal: Refusal | None = None
    """Why the release that the pointer names is not current."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of those that the operator named, `slug@digest` to the reason why it is not mounted."""

    @property
    def opened(self) -> Mapping[str, OpenPack]:
        """All by digest."""
        return {pack.digest: pack for pack in (*self.mounted, *self.kept, self.current) if pack}


class Releases:
    """A library that follows the pointers of `dist`.

    Each method answers from one catalog; whoever needs the same one for several calls takes `current` once.
    """

    def __init__(
        self,
        dist: Path,
        today: date | None = None,
        audience: str = AUDIENCES[0],
        operator: Operator = NO_OPERATOR,
        *,
        keep: int = 0,
        mount: Sequence[str] = (),
    ) -> None:
        """Open the current release of every pack; see `catalog.open_catalog`, whose errors are raised.

        Of each pack `keep` releases stay open after they were replaced. `mount` names others as `slug@digest`, the
        digest whole or by its first digits.
        """
        self._dist = dist
        self._today = today
        self._operator = operator
        self._audiences = AUDIENCES[: AUDIENCES.index(audience) + 1]
        self._keep = keep
        self._mount = tuple(mount)
        self._lock = Lock()
        self._complaint = ""
        self.observe: Callable[[str], None] = _unobserved
        """Told `swapped` or `refused` of each change of a pack's current release."""
        self._replaced: list[ref[Catalog]] = []
        self._shelves: Mapping[str, _Shelf] = {}
        if not dist.is_dir():
            raise ConfigError(f"{dist}: not a folder; expected one that `octavo build --out` filled")
        self._shelves = self._renewed(again=True)
        if not _any_pack(self._shelves):
            raise ConfigError(f"{dist}: no pack; build one with `octavo build PACK --out {dist}`")
        self.current = self._catalog()
        """Replaced as a whole, never changed."""

    def refresh(self, *, again: bool = False) -> Catalog:
        """Serve what the pointers name now; `again` also tries those that were refused, though nothing changed.

        It blocks while releases are verified, and raises nothing: what is wrong is logged, and what was served is
        served on. Two of them never run at once.
        """
        with self._lock:
            began, before = monotonic(), self._shelves
            try:
                after = self._renewed(again=again)
            except OSError as error:
                self._complain(f"the folder of releases cannot be read ({error.strerror}); what is open is served on")
                return self.current
            if after is before:
                return self.current
            if not _any_pack(after):
                self._complain("there is no pack in the folder of releases any more; what is open is served on")
                return self.current
            self._complaint = ""
            self._shelves = after
            if after != before:  # a build that began in the folder changes its look only
                self._replaced.append(ref(self.current))
                self.current = self._catalog()
                for outcome in _tell(before, after, monotonic() - began):
                    self.observe(outcome)
            return self.current

    def release(self) -> None:
        """Close what was replaced and has no request any more.

        The MCP SDK's objects refer to each other in circles, and through them to a request's catalog: without this a
        release that was replaced would stay mapped until Python happens to look at its oldest objects.
        """
        if self._replaced:
            gc.collect()
            self._replaced = [catalog for catalog in self._replaced if catalog() is not None]

    @property
    def packs(self) -> Mapping[str, OpenPack]:
        """See `Catalog`."""
        return self.current.packs

    @property
    def refused(self) -> Mapping[str, str]:
        """See `Catalog`."""
        return self.current.refused

    @property
    def releases(self) -> Mapping[str, OpenPack]:
        """See `Catalog`."""
        return self.current.releases

    @property
    def failed(self) -> Mapping[str, Refusal]:
        """See `Catalog`."""
        return self.current.failed

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """See `Catalog.search`."""
        return self.current.search(request, slugs)

    def choose(self, name: str | None) -> OpenPack:
        """See `Catalog.choose`."""
        return self.current.choose(name)

    def _renewed(self, *, again: bool) -> Mapping[str, _Shelf]:
        """The shelves as they should be; these, when nothing changed. Raises OSError."""
        shelves = self._shelves
        looks = {folder.name: self._look(folder, shelves.get(folder.name)) for folder in _folders(self._dist)}
        if not again and looks == {slug: shelf.look for slug, shelf in shelves.items()}:
            return shelves
        packs = {folder.name for folder in pack_directories(self._dist)}
        encoders = _encoders(shelves.values())
        renewed: dict[str, _Shelf] = {}
        for slug, look in looks.items():
            shelf = shelves.get(slug)
            if shelf is not None and shelf.look == look and not again:
                renewed[slug] = shelf
            else:
                renewed[slug] = (
                    self._renew(slug, look, shelf or _Shelf(look), encoders) if slug in packs else _Shelf(look)
                )
        return renewed

    def _renew(self, slug: str, look: _Look, shelf: _Shelf, encoders: dict[str, Encoder]) -> _Shelf:
        """The shelf of a pack after a look at its folder; what is open already is not verified again."""
        folder = self._dist / slug
        try:
            digest = read_pointer(folder)
        except ArtifactError as error:
            found, needed = Refusal(None, str(error)), ()
        else:
            needed = self._needed(folder / digest)  # before it is read, so that what happens meanwhile shows
            found = shelf.opened.get(digest) or self._open(folder / digest, encoders)
        mounted, missing = self._mounted(folder, shelf.opened, encoders)
        current = found if isinstance(found, OpenPack) else shelf.current
        replaced = (shelf.current, *shelf.kept) if current is not shelf.current else shelf.kept
        return _Shelf(
            look=_Look(look.pointer, look.folder, needed if isinstance(found, Refusal) else ()),
            current=current,
            kept=tuple(pack for pack in replaced if pack and pack is not current and (folder / pack.digest).is_dir())[
                : self._keep
            ],
            mounted=mounted,
            refusal=found if isinstance(found, Refusal) else None,
            missing=missing,
        )

    def _open(self, artifact: Path, encoders: dict[str, Encoder]) -> OpenPack | Refusal:
        """A release that may be served, or why it may not."""
        digest, starting = artifact.name, not self._shelves
        try:
            pack = open_release(artifact, self._dist, encoders, self._today, self._operator)
        except OctavoError as error:
            if starting and isinstance(error, ConfigError):
                raise  # no pack's fault: none of them would open
            return Refusal(digest, str(error))
        except Exception as error:
            if starting:
                raise
            _logger.exception("%s/%s cannot be opened", artifact.parent.name, digest[:12])
            return Refusal(digest, f"{artifact.parent.name}/{digest[:12]}: cannot be opened ({type(error).__name__})")
        if pack.audience not in self._audiences:
            reason = f"{pack.slug}/{digest[:12]}: for an audience that is not served here"
            return Refusal(digest, reason, pack.audience)
        return pack

    def _mounted(
        self, folder: Path, opened: Mapping[str, OpenPack], encoders: dict[str, Encoder]
    ) -> tuple[tuple[OpenPack, ...], Mapping[str, str]]:
        """Of what the operator named the releases of this pack, and the reasons for those that cannot be had."""
        mounted: list[OpenPack] = []
        missing: dict[str, str] = {}
        for name in self._mount:
            slug, _, start = name.partition("@")
            if slug != folder.name:
                continue
            digests = [each for each in os.listdir(folder) if DIGEST.fullmatch(each) and each.startswith(start)]
            if len(digests) != 1:
                missing[name] = f"{name}: {'several releases' if digests else 'no release'} of this digest"
                continue
            found = opened.get(digests[0]) or self._open(folder / digests[0], encoders)
            if isinstance(found, OpenPack):
                mounted.append(found)
            else:
                missing[name] = found.reason
        return tuple(mounted), missing

    def _catalog(self) -> Catalog:
        shelves = {slug: shelf for slug, shelf in self._shelves.items() if shelf.current or shelf.refusal}
        refusals = {slug: shelf.refusal for slug, shelf in shelves.items() if shelf.refusal}
        unserved = {slug: refusal for slug, refusal in refusals.items() if not shelves[slug].current}
        missing = {name: reason for shelf in shelves.values() for name, reason in shelf.missing.items()}
        nowhere = [name for name in self._mount if name.partition("@")[0] not in shelves]
        return Catalog(
            packs={slug: shelf.current for slug, shelf in shelves.items() if shelf.current},
            refused={slug: refusal.reason for slug, refusal in unserved.items() if refusal.audience is None}
            | missing
            | {name: f"{name}: no pack of this name in the folder of releases" for name in nowhere},
            withheld={slug: refusal.audience for slug, refusal in unserved.items() if refusal.audience is not None},
            failed={slug: refusal for slug, refusal in refusals.items() if shelves[slug].current},
            beside=tuple(
                pack
                for shelf in shelves.values()
                for _, pack in sorted(shelf.opened.items())
                if pack is not shelf.current
            ),
            operator=self._operator,
        )

    def _look(self, folder: Path, shelf: _Shelf | None) -> _Look:
        refusal = shelf.refusal if shelf else None
        return _Look(
            pointer=_print(folder / POINTER),
            folder=_print(folder),
            needed=self._needed(folder / refusal.digest) if refusal and refusal.digest else (),
        )

    def _needed(self, artifact: Path) -> tuple[_Print, ...]:
        """Of all files of a release, and of all encoders."""
        roots = (artifact, self._dist / ENCODERS)
        return tuple(_print(file) for root in roots for file in sorted(root.rglob("*")))

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            _logger.error("%s", reason)
        self._complaint = reason


def current(library: Library) -> Library:
    """What answers now; the same object until something is replaced."""
    return library.current if isinstance(library, Releases) else library


@asynccontextmanager
async def following(library: Library, seconds: float, *, hangup: bool = False) -> AsyncGenerator[None]:
    """Look at the pointers every so many seconds, 0 for never, and with `hangup` on SIGHUP.

    A library that is not live is left alone. SIGHUP is listened for only in a process's main thread, and only if that
    is wanted: to a process that a client has started in its terminal it means what it always does.
    """
    if not isinstance(library, Releases):
        yield
        return
    asked = asyncio.Event()
    listens = hangup and current_thread() is main_thread()
    if listens:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_follow, library, seconds, asked)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
            if listens:
                asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)


async def _follow(releases: Releases, seconds: float, asked: asyncio.Event) -> None:
    while True:
        with anyio.move_on_after(seconds or math.inf):
            await asked.wait()
        again = asked.is_set()
        asked.clear()
        try:
            await run_sync(partial(releases.refresh, again=again), abandon_on_cancel=True)
            await run_sync(releases.release, abandon_on_cancel=True)
        except Exception:
            _logger.exception("the look for new releases failed")  # and what is open is served on


def _folders(dist: Path) -> list[Path]:
    """What may be the folder of a pack, by slug."""
    with os.scandir(dist) as entries:
        return sorted(Path(entry.path) for entry in entries if SLUG.fullmatch(entry.name) and entry.is_dir())


def _print(path: Path) -> _Print:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _any_pack(shelves: Mapping[str, _Shelf]) -> bool:
    return any(shelf.current or shelf.refusal for shelf in shelves.values())


def _encoders(shelves: Iterable[_Shelf]) -> dict[str, Encoder]:
    """Those in use, by fingerprint; one that could not be had may be there now."""
    packs = [pack for shelf in shelves for pack in shelf.opened.values()]
    encoders = {fingerprint(pack.manifest.encoder): pack.index.encoder for pack in packs}
    return {name: encoder for name, encoder in encoders.items() if not isinstance(encoder, AbsentEncoder)}


def _unobserved(outcome: str) -> None:
    """For those who do not watch."""


def _tell(before: Mapping[str, _Shelf], after: Mapping[str, _Shelf], seconds: float) -> Iterator[str]:
    """Log what a refresh changed, and tell which releases were swapped or refused."""
    for slug in sorted(before.keys() | after.keys()):
        old, new = before.get(slug), after.get(slug)
        was, now = old and old.current, new and new.current
        if now and not was:
            _logger.info("%s: serves %s, which took %.2f s", slug, now.digest[:12], seconds)
        elif was and not now:
            _logger.info("%s: is gone, and with it %s", slug, was.digest[:12])
        elif was and now and was is not now:
            took = f"which took {seconds:.2f} s"
            _logger.info("%s: serves %s in place of %s, %s", slug, now.digest[:12], was.digest[:12], took)
            yield "swapped"
        if new and new.refusal and new.refusal != (old and old.refusal):
            kept = f"; {now.digest[:12]} is served on" if now else ""
            _logger.error("%s: refused %s%s", slug, new.refusal.reason, kept)
            yield "refused"
