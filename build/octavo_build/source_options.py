"""What the command line and the environment say of the sources: the same arguments for every command that reads packs.

The environment is read here and nowhere else: adapters get options.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

OWNER_VARIABLE = "OKF_MCP_OWNER"
ROOTS_VARIABLE = "OKF_MCP_ROOTS"
ENCODER_VARIABLE = "OCTAVO_ENCODER"


def add_format(parser: ArgumentParser) -> None:
    """The argument that names the packs' source format."""
    parser.add_argument(
        "--source-format", metavar="NAME", help="the packs' source format (what pack.yaml or the folder says)"
    )


def add_repository(parser: ArgumentParser) -> None:
    """The arguments that say what of a knowledge repository is read, and on whose behalf."""
    parser.add_argument(
        "--owner", metavar="NAME", help=f"owner of a knowledge repository ({OWNER_VARIABLE}, else its folder's name)"
    )
    parser.add_argument(
        "--roots",
        metavar="LIST",
        help=f"folders of a knowledge repository, comma separated ({ROOTS_VARIABLE}, colon separated; else design/, "
        "backlog/docs/, backlog/decisions/)",
    )


def add_encoder(parser: ArgumentParser) -> None:
    """The argument that names the encoder."""
    parser.add_argument(
        "--encoder",
        metavar="SPEC",
        help=f"path:FOLDER, hub:OWNER/NAME@REVISION or openai:URL#MODEL ({ENCODER_VARIABLE}, else what the pack says)",
    )


def encoder_of(arguments: Namespace) -> str | None:
    """The encoder for all packs; None when each pack says."""
    return getattr(arguments, "encoder", None) or os.environ.get(ENCODER_VARIABLE, "").strip() or None


def options_of(arguments: Namespace) -> dict[str, str]:
    """The options for the adapters: of each, the first source that is not empty."""
    from octavo_build.sources.repository import split_roots

    roots = split_roots(arguments.roots or "") or split_roots(os.environ.get(ROOTS_VARIABLE, ""), ":")
    options = {
        "format": arguments.source_format,
        "owner": (arguments.owner or "").strip() or os.environ.get(OWNER_VARIABLE, "").strip(),
        "roots": ",".join(roots),
    }
    return {name: value for name, value in options.items() if value}
