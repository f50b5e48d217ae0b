"""Pages of a list that MCP gives, and the cursors that lead from one to the next."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import mcp.types as t
from mcp.shared.exceptions import MCPError

ItemT = TypeVar("ItemT")


def page_after(
    items: Sequence[ItemT], cursor: str | None, size: int, name: Callable[[ItemT], str]
) -> tuple[Sequence[ItemT], str | None]:
    """At most `size` items from the one after the cursor's on, and the cursor of the next page.

    A cursor is the last item's `name`, unique in the list: none is left out or given twice when others come or go.
    Raises MCPError for a cursor that this list did not give.
    """
    start = 0 if cursor is None else _place_after(map(name, items), cursor)
    page = items[start : start + size]
    return page, _encode(name(page[-1])) if len(items) > start + size else None


def cursor_of(params: t.PaginatedRequestParams | None) -> str | None:
    """The cursor of a request, if it has one."""
    return params.cursor if params is not None else None


def _place_after(names: Iterable[str], cursor: str) -> int:
    try:
        last = base64.urlsafe_b64decode(cursor).decode()
        return next(place for place, name in enumerate(names, 1) if name == last)
    except (ValueError, StopIteration) as error:
        raise _bad_cursor() from error


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _bad_cursor() -> MCPError:
    return MCPError(t.INVALID_PARAMS, "cursor: not one that this release gave; list again from the start")
