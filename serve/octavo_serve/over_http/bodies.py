"""How the body of a POST becomes a request."""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from octavo_artifact.errors import RequestError
from octavo_serve.requests import RequestT, parse_request

JSON = "application/json"


async def request_of_body(model: type[RequestT], request: Request, *, pack: str | None = None) -> RequestT:
    """The request that a JSON body asks for, types as they are; `pack` is the one that the path names.

    Raises HTTPException with status 415 for another type of content and 400 for what is no JSON, RequestError for
    what is no request.
    """
    if not _is_json(request.headers.getlist("content-type")):
        raise HTTPException(415, f"Content-Type: expected {JSON}, in UTF-8", {"Accept-Post": JSON})
    try:
        values = from_json(await request.body(), allow_inf_nan=False)
    except ValueError:
        # What the parser says would repeat the body.
        raise HTTPException(400, "body: not JSON") from None
    if not isinstance(values, dict):
        raise RequestError("body", "expected a JSON object")
    if pack is not None:
        if "pack" in values:
            raise RequestError("pack", "unknown here, where the path names the pack")
        values["pack"] = pack
    return parse_request(model, cast(dict[str, Any], values), strict=True)


def _is_json(types: list[str]) -> bool:
    if len(types) != 1:
        return False
    media_type, *parameters = (part.strip().lower() for part in types[0].split(";"))
    return media_type == JSON and all(each in ("charset=utf-8", 'charset="utf-8"') for each in parameters if each)
