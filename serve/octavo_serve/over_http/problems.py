"""HTTP errors, all of them: RFC 9457 problem details, made here and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from octavo_artifact.errors import NotFoundError, OctavoError, RequestError
from octavo_serve.faces import RETRY_AFTER, UnavailableError, message
from octavo_serve.over_http.caching import NEVER
from octavo_serve.watching.notes import current

PROBLEM = "application/problem+json"

_logger = logging.getLogger(__name__)


def problem(
    status: int,
    detail: str | None = None,
    *,
    field: str | None = None,
    headers: dict[str, str] | None = None,
    more: Mapping[str, str | None] | None = None,
) -> Response:
    """A response that says what is wrong; `type` is `about:blank`, so `title` is the status in words.

    A failure of the server names the request, for its log says more of it than the client may know. `more` are further
    members.
    """
    body: dict[str, str | int | None] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    if detail is not None:
        body["detail"] = detail
    if field is not None:
        body["field"] = field
    note = current.get()
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and note is not None:
        body["request_id"] = note.request_id
    body |= more or {}
    # Without this a cache may keep some of them, 404 for one, as long as it likes (RFC 9111 4.2.2).
    headers = {"Cache-Control": NEVER, **(headers or {})}
    return JSONResponse(body, status, headers, media_type=PROBLEM)


def octavo_problem(error: OctavoError) -> Response:
    """The response for an error of ours; what only the operator can mend is not explained to the client."""
    match error:
        case NotFoundError(field=field):
            return problem(404, message(error), field=field)
        case RequestError(field=field):
            return problem(422, message(error), field=field)
        case UnavailableError():
            return problem(503, message(error), headers={"Retry-After": str(RETRY_AFTER)})
        case _:
            _logger.error("%s", error)
            return problem(500)


async def on_octavo_error(request: Request, error: Exception) -> Response:
    """Starlette's handler for OctavoError."""
    assert isinstance(error, OctavoError)
    return octavo_problem(error)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's handler for what routing or the reading of a body refuses."""
    assert isinstance(error, HTTPException)
    said = error.detail if error.detail != HTTPStatus(error.status_code).phrase else None
    return problem(error.status_code, said, headers=dict(error.headers or {}))


async def on_exception(request: Request, error: Exception) -> Response:
    """Starlette's handler for all else; the server logs the traceback, the client learns nothing of it."""
    return problem(500)
