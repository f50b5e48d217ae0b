"""Completion of what a person types into a template's variable, or a prompt's argument."""

from __future__ import annotations

from typing import Any

import mcp.types as t

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_serve.completion import Names
from octavo_serve.over_mcp.endpoint import Endpoint
from octavo_serve.over_mcp.offers import Prompts, templates

MAX_TYPED = 2000
"""Characters that are completed."""


def complete(endpoint: Endpoint, params: t.CompleteRequestParams) -> dict[str, Any]:
    """The values, how many there are, and whether there are more than were given.

    Raises RequestError for a template or a prompt that is not of this endpoint.
    """
    typed = params.argument.value
    if len(typed) > MAX_TYPED:
        raise RequestError("argument", f"longer than {MAX_TYPED:,} characters")
    values, total = _names(endpoint, params).matching(typed)
    return {"values": values, "total": total, "hasMore": total > len(values)}


def _names(endpoint: Endpoint, params: t.CompleteRequestParams) -> Names:
    argument = params.argument.name
    if isinstance(params.ref, t.PromptReference):
        return Prompts(endpoint).values(params.ref.name, argument)
    given = (params.context and params.context.arguments) or {}
    for template in templates(endpoint):
        if template.uri == params.ref.uri:
            return template.variables[argument](given) if argument in template.variables else Names(())
    raise NotFoundError("ref", "no such template; list the templates first")
