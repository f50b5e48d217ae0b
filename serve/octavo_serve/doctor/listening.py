"""The address: whether clients can reach the server, and only those who should."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from octavo_artifact.errors import ConfigError
from octavo_serve.doctor.finding import Finding, Subject
from octavo_serve.settings import ServerSettings

_WILDCARDS = ("", "0.0.0.0", "::")


def port(subject: Subject) -> Iterator[Finding]:
    """The address must be this machine's, and the port free."""
    from octavo_serve.over_http.run import address, bind

    try:
        with bind(subject.settings) as listener:
            found = address(listener)
    except ConfigError as error:
        step = "stop what listens there (perhaps the server itself), or set another `host` or `port`"
        yield Finding("port", "fail", str(error), "an address of this machine and a free port", step)
    else:
        shown = "any free port" if subject.settings.port == 0 else found
        yield Finding("port", "ok", f"{shown} can be listened on")


def hosts(subject: Subject) -> Iterator[Finding]:
    """A server of all addresses knows none of its names, and answers 421 to all but `localhost`."""
    settings = subject.settings
    if settings.host in _WILDCARDS and not settings.allowed_hosts:
        found = f"host {settings.host or 'empty'} listens everywhere, and only `localhost` is answered"
        yield Finding("hosts", "warn", found, "the names that clients use", "set `allowed_hosts: [kb.example.org]`")
    else:
        yield Finding("hosts", "ok", f"answers to {', '.join(sorted(settings.hosts))}")


def public(subject: Subject) -> Iterator[Finding]:
    """Without keys everybody who reaches the address may ask."""
    settings = subject.settings
    if not settings.keys and not settings.oauth and not _is_loopback(settings):
        found = f"host {settings.host} is reached from other machines, and there are no keys"
        step = "`octavo key new` makes entries for `keys`; leave it so if the packs are for everybody"
        yield Finding("access", "warn", found, "keys, or packs for everybody", step)
    else:
        ways = [way for way, given in (("keys", settings.keys), ("tokens", settings.oauth)) if given]
        yield Finding("access", "ok", f"by {' and '.join(ways)}" if ways else "from this machine only")


def _is_loopback(settings: ServerSettings) -> bool:
    try:
        return ip_address(settings.host).is_loopback
    except ValueError:
        return settings.host == "localhost"
