"""Pages of a list that MCP gives, and the cursors that lead from one to the next."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Protocol, TypeVar

import mcp.types as t
from mcp.shared.exceptions import MCPError


class Named(Protocol):
    """What a list may consist of."""

    @property
    def uri(self) -> str:
        """Unique in the list."""
        ...


ItemT = TypeVar("ItemT", bound=Named)


def page_after(items: Sequence[ItemT], cursor: str | None, size: int) -> tuple[Sequence[ItemT], str | None]:
    """At most `size` items from the one after the cursor's on, and the cursor of the next page.

    Raises MCPError for a cursor that this list did not give.
    """
    start = 0 if cursor is None else _place_after(items, cursor)
    page = items[start : start + size]
    return page, _encode(page[-1].uri) if len(items) > start + size else None


def refuse_cursor(params: t.PaginatedRequestParams | None) -> None:
    """Of a list that has one page only. Raises MCPError."""
    if params is not None and params.cursor is not None:
        raise _bad_cursor()


def cursor_of(params: t.PaginatedRequestParams | None) -> str | None:
    """The cursor of a request, if it has one."""
    return params.cursor if params is not None else None


def _place_after(items: Sequence[Named], cursor: str) -> int:
    try:
        last = base64.urlsafe_b64decode(cursor).decode()
        return next(place for place, item in enumerate(items, 1) if item.uri == last)
    except (ValueError, StopIteration) as error:
        raise _bad_cursor() from error


def _encode(uri: str) -> str:
    return base64.urlsafe_b64encode(uri.encode()).decode()


def _bad_cursor() -> MCPError:
    return MCPError(t.INVALID_PARAMS, "cursor: not one that this release gave; list again from the start")
