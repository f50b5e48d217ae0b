"""Errors by who must act. Every other package raises these, and one handler at each edge renders them."""

from __future__ import annotations


class OctavoError(Exception):
    """Something a person can act on: the message has the place, what was found and what was expected."""

    exit_code = 1


class PackError(OctavoError):
    """The pack's author must act: file, line, found, expected."""


class ArtifactError(OctavoError):
    """The operator must act on an artifact: which file, what is wrong with it."""


class ConfigError(OctavoError):
    """The operator must act on a setting or an argument."""

    exit_code = 2


class RequestError(OctavoError):
    """The client must change its request: which field, what is allowed."""

    exit_code = 2

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class NotFoundError(RequestError):
    """What the client named does not exist here."""

    exit_code = 1
