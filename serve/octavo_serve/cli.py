"""The command `octavo`: finds its sub-commands through entry points and renders every error in one place."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from octavo_artifact import __version__
from octavo_artifact.command import GROUP, Command
from octavo_artifact.errors import OctavoError
from octavo_serve.commands.arguments import is_colourful

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run `octavo`; returns the exit code: 0 done, 1 something is wrong with a pack or an artifact or nothing was
    found, 2 the command line or a setting is wrong.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    found = {point.name: point for point in entry_points(group=GROUP)}
    name = arguments[0] if arguments else ""
    if name not in found:
        return _top_level(found, arguments)
    command = _load(found[name])
    parsed = _parser(command).parse_args(arguments[1:])
    try:
        code = command.run(parsed)
        sys.stdout.flush()
        return code
    except OctavoError as error:
        return _fail(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        if command.extra is None:
            raise
        return _fail(f"`octavo {name}` needs {error.name}; install it with: pip install 'octavo[{command.extra}]'", 2)
    except BrokenPipeError:
        # the reader went away (`octavo search ... | head`); keep Python from failing once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _top_level(found: dict[str, EntryPoint], arguments: Sequence[str]) -> int:
    commands = [_load(point) for _, point in sorted(found.items())]
    width = max((len(command.name) for command in commands), default=0)
    listing = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in commands)
    parser = argparse.ArgumentParser(
        prog="octavo",
        usage="octavo COMMAND ...",
        description="Knowledge packs compiled into reproducible artifacts, served read-only over MCP and HTTP.",
        epilog=f"commands:\n{listing}\n\n`octavo COMMAND --help` shows each with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"octavo {__version__}")
    _, rest = parser.parse_known_args(arguments)
    if rest:
        parser.error(f"unknown command {rest[0]!r}; known are {', '.join(command.name for command in commands)}")
    parser.print_help()
    return 0


def _load(point: EntryPoint) -> Command:
    command = point.load()
    if not isinstance(command, Command):
        raise TypeError(f"entry point {point.name} of {GROUP} is not a Command")
    return command


def _parser(command: Command) -> argparse.ArgumentParser:
    examples = "\n".join(f"  {example}" for example in command.examples)
    parser = argparse.ArgumentParser(
        prog=f"octavo {command.name}",
        description=command.description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    return parser


def _fail(message: str, code: int) -> int:
    red, plain = ("\x1b[31m", "\x1b[0m") if is_colourful(sys.stderr) else ("", "")
    print(f"{red}octavo:{plain} {message}", file=sys.stderr)
    return code
