"""Resources, their templates and prompts as MCP lists and gives them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_artifact.ids import KNOWLEDGE, knowledge_uri
from octavo_artifact.schema import Resource
from octavo_serve.completion import Names
from octavo_serve.faces import Pack, owner_of
from octavo_serve.labels import MAX_DESCRIPTION, MAX_TITLE, label
from octavo_serve.over_mcp.endpoint import Endpoint
from octavo_serve.prompts import Prompt, skill_prompt_name
from octavo_serve.skills import SCHEME, Skill

MAX_ARGUMENT = 2000
"""Characters of a prompt's argument."""

_TEXT_TYPES = ("text/", "application/json", "application/yaml", "application/xml", "application/toml")
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")

_SEGMENT = r"([^/]+)"
_FOLDER = r"([^/]+)/.*"
_PATH = r"(.+)"


@dataclass(frozen=True, slots=True)
class Template:
    """A template of URIs, and what its variables may be."""

    uri: str
    name: str
    title: str
    description: str
    variables: Mapping[str, Callable[[Mapping[str, str]], Names]] = field(repr=False)
    """Of each variable its values, given those of others."""

    @property
    def listed(self) -> dict[str, Any]:
        """As JSON."""
        return {"uriTemplate": self.uri, "name": self.name, "title": self.title, "description": self.description}


def listed(resource: Resource) -> dict[str, Any]:
    """A resource as JSON."""
    known = {
        "uri": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
        "size": resource.size,
        "_meta": _meta(resource),
    }
    return {name: value for name, value in known.items() if value is not None}


def contents(uri: str, resource: Resource, content: bytes) -> dict[str, Any]:
    """What was read, as text where it is text."""
    about: dict[str, Any] = {"uri": uri, "mimeType": resource.mime_type}
    if meta := _meta(resource):
        about["_meta"] = meta
    if resource.mime_type.startswith(_TEXT_TYPES) or resource.mime_type.endswith(_TEXT_SUFFIXES):
        try:
            return {**about, "text": content.decode()}
        except UnicodeDecodeError:
            pass
    return {**about, "blob": base64.b64encode(content).decode()}


def templates(endpoint: Endpoint) -> Iterator[Template]:
    """One for each kind of resource of each pack, and one for what every pack has."""
    packs = endpoint.packs
    described = [pack for pack in packs if owner_of(pack) is None]
    if endpoint.several and described:
        slugs = {pack.slug: pack for pack in described}

        def about(given: Mapping[str, str]) -> Names:
            asked = [slugs[given["pack"]]] if given.get("pack") in slugs else described
            return Names(name for pack in asked for name in pack.names(f"ep://{pack.slug}/", _SEGMENT))

        yield Template(
            "ep://{pack}/{name}", "pack-about", "About a pack", _ABOUT, {"pack": lambda _: Names(slugs), "name": about}
        )
    for pack in packs:
        yield from _templates_of(pack, alone=not endpoint.several)


_ABOUT = "What a pack says of itself: manifest, files, and where it has them overview and authority."


def _templates_of(pack: Pack, *, alone: bool) -> Iterator[Template]:
    slug, title = pack.slug, label(pack.manifest.pack["name"], MAX_TITLE)

    def of(prefix: str, pattern: str) -> Callable[[Mapping[str, str]], Names]:
        return lambda _: pack.names(prefix, pattern)

    owner = owner_of(pack)
    if owner is not None:
        root = knowledge_uri(owner, "", "")[:-1]
        yield Template(
            f"{root}{{type}}/{{+id}}",
            f"{slug}-document",
            f"{title}: document",
            "A document of the repository by its type and id.",
            {"type": of(root, _FOLDER), "id": lambda given: _ids(pack, root, given)},
        )
    else:
        if alone:
            about = {"name": of(f"ep://{slug}/", _SEGMENT)}
            yield Template(f"ep://{slug}/{{name}}", f"{slug}-about", f"{title}: about", _ABOUT, about)
        yield Template(
            f"ep://{slug}/file/{{+path}}",
            f"{slug}-file",
            f"{title}: file",
            "A file of the pack by its path.",
            {"path": of(f"ep://{slug}/file/", _PATH)},
        )
        yield Template(
            f"ep://{slug}/always/{{+path}}",
            f"{slug}-always",
            f"{title}: file for every context",
            "A file that is meant to be always in context, by its path.",
            {"path": lambda _: pack.always()},
        )
    if pack.manifest.counts.get("skills", 0):
        yield Template(
            f"{SCHEME}{slug}/{{+path}}",
            f"{slug}-skill",
            f"{title}: file of a skill",
            "A file of the pack's skills by its path; each SKILL.md leads to the others.",
            {"path": of(f"{SCHEME}{slug}/", _PATH)},
        )


def _ids(pack: Pack, root: str, given: Mapping[str, str]) -> Names:
    if kind := given.get("type"):
        return pack.names(f"{root}{kind}/", _PATH)
    return pack.names(root, r"[^/]+/(.+)")


class Prompts:
    """All prompts of an endpoint by the names they go by there: the packs' own, with the slug before them where there
    are several packs, and one for each skill, for clients that know no skills.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._own = {
            f"{pack.slug}-{prompt.name}" if endpoint.several else prompt.name: (pack, prompt)
            for pack in endpoint.packs
            for prompt in pack.prompts()
        }
        self._skills = {
            skill_prompt_name(skill): (pack, skill)
            for pack in endpoint.packs
            if pack.manifest.counts.get("skills", 0)
            for skill in pack.skills().values()
        }

    @property
    def listed(self) -> Sequence[dict[str, Any]]:
        """As JSON: prompts, then skills."""
        return [
            *(_listed_prompt(name, prompt) for name, (_, prompt) in self._own.items()),
            *(_listed_skill(name, skill) for name, (_, skill) in self._skills.items() if name not in self._own),
        ]

    def values(self, name: str, argument: str) -> Names:
        """What an argument of a prompt may be, as far as its pack tells. Raises NotFoundError."""
        found = self._own.get(name)
        if found is None and name not in self._skills:
            raise _no_prompt()
        arguments = found[1].arguments if found else ()
        return Names(value for each in arguments if each.name == argument for value in each.values)

    def get(self, name: str, given: Mapping[str, str]) -> dict[str, Any]:
        """A prompt as JSON. Raises RequestError for another name, for an argument that it has not, one too long, and
        one that is missing.
        """
        if name in self._own:
            pack, prompt = self._own[name]
            _check(prompt, given)
            text, description = prompt.filled(pack.prompt(prompt.name)[1], given), prompt.description
        elif name in self._skills:
            if given:
                raise RequestError("arguments", "a skill takes none")
            pack, skill = self._skills[name]
            text = pack.resource(skill.uri)[1].decode("utf-8", "replace")
            description = _listed_skill(name, skill)["description"]
        else:
            raise _no_prompt()
        messages = [{"role": "user", "content": {"type": "text", "text": text}}]
        return {"messages": messages, "description": description}


def _no_prompt() -> NotFoundError:
    return NotFoundError("name", "no such prompt; list the prompts first")


def _check(prompt: Prompt, given: Mapping[str, str]) -> None:
    known = {argument.name: argument for argument in prompt.arguments}
    for name, value in given.items():
        if name not in known:
            raise RequestError("arguments", f"this prompt takes {', '.join(known) or 'none'}")
        if len(value) > MAX_ARGUMENT:
            raise RequestError(f"arguments.{name}", f"longer than {MAX_ARGUMENT:,} characters")
    for name, argument in known.items():
        if argument.required and not given.get(name):
            raise RequestError(f"arguments.{name}", "missing")


def _listed_prompt(name: str, prompt: Prompt) -> dict[str, Any]:
    known: dict[str, Any] = {
        "name": name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {
                "name": argument.name,
                "required": argument.required,
                **({"description": argument.description} if argument.description else {}),
            }
            for argument in prompt.arguments
        ]
        or None,
    }
    return {key: value for key, value in known.items() if value is not None}


def _listed_skill(name: str, skill: Skill) -> dict[str, Any]:
    told = (str(skill.frontmatter.get(key) or "") for key in ("name", "description"))
    title, description = (label(each, MAX_DESCRIPTION) for each in told)
    return {"name": name, "title": f"Skill: {title}", "description": description}


def _meta(resource: Resource) -> dict[str, Any] | None:
    """What okf-mcp-server tells with a document; clients notice by it that the text has changed."""
    return {"content_hash": f"sha256:{resource.sha256}"} if resource.uri.startswith(KNOWLEDGE) else None
