"""`hub:OWNER/NAME@REVISION`, a folder of a model hub at one commit; once fetched it is as `path:`.

A commit says all of a model's files, so nothing is fetched twice, and a server fetches nothing. The hub's own client
does it, with the address in `HF_ENDPOINT` and the login that it knows.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_artifact.layout import ENCODER_TOKENIZER
from octavo_build.encoders import folder
from octavo_build.encoders.adapter import Adapter, Choice, Places, Prepared

_LOCATION = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)@(?P<revision>[0-9a-f]{40})", re.ASCII)


def prepare(choice: Choice, places: Places) -> Prepared:
    """The encoder, fetched into the state folder unless it is there. Raises ConfigError."""
    named = _LOCATION.fullmatch(choice.location)
    if named is None:
        raise ConfigError(f"{choice.shown}: expected OWNER/NAME@REVISION, 40 hex digits (no branch, no tag)")
    kept = places.state / "hub" / sha256_hex(choice.location.encode())[:32]
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=".making-", dir=kept.parent))
        try:
            _fetch(choice, named["repository"], named["revision"], making)
            making.rename(kept)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder.prepare_folder(choice, kept)


ADAPTER = Adapter(folder.OPTIONS, prepare)


def _fetch(choice: Choice, repository: str, revision: str, target: Path) -> None:
    """The files that decide a vector, and no others."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    hub = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
    try:
        there = set(hub.list_repo_files(repository, revision=revision))
        model = next((name for name in folder.MODELS if name in there), None)
        if model is None or ENCODER_TOKENIZER not in there:
            wanted = f"{' or '.join(folder.MODELS)}, and {ENCODER_TOKENIZER}"
            raise ConfigError(f"{choice.shown}: the repository lacks what is needed: {wanted}")
        weights = sorted(name for name in there if name.startswith(model))  # and those in files beside it
        for name in (*weights, ENCODER_TOKENIZER, *sorted(there.intersection(folder.CONFIGURATIONS))):
            hub.hf_hub_download(repository, name, revision=revision, local_dir=target)
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise ConfigError(f"{choice.shown}: the hub answered {status}") from error
    except HFValidationError as error:
        raise ConfigError(f"{choice.shown}: not a repository's name") from error
    except OSError as error:
        raise ConfigError(f"{choice.shown}: cannot be fetched ({type(error).__name__})") from error
    shutil.rmtree(target / ".cache", ignore_errors=True)  # the client's notes on its downloads
