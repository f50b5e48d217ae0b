"""What an operator decides about the server; checked here, once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo_artifact.errors import ConfigError

AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")
"""Host name, IPv4 or bracketed IPv6 address in lower case, and perhaps a port (RFC 9110, `Host`)."""

_ORIGIN = re.compile(rf"[a-z][a-z0-9+.-]*://{AUTHORITY.pattern}")
_WILDCARDS = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the server listens, and whom it answers."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 lets the system choose."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in `Host` that are answered besides this machine's own, with a port to allow that port only."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins whose pages may call the server besides its own, such as `https://app.example.org`."""
    answer_timeout: float = 10.0
    """Seconds a pack may take to answer."""
    body_timeout: float = 10.0
    """Seconds a client may take to send a request's head, and again its body."""
    max_body: int = 256 * 1024
    """Bytes of a request's body."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port: {self.port}, expected 0 to 65535")
        for name in self.allowed_hosts:
            if not AUTHORITY.fullmatch(name.lower()):
                raise ConfigError(f"allowed_hosts: {name!r}, expected a host name with or without a port")
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin.lower()):
                raise ConfigError(f"allowed_origins: {origin!r}, expected scheme://host with or without a port")

    @property
    def hosts(self) -> frozenset[str]:
        """All names in `Host` that are answered, in lower case."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        bound = () if self.host in _WILDCARDS else (own,)
        return frozenset(name.lower() for name in ("127.0.0.1", "localhost", "[::1]", *bound, *self.allowed_hosts))
