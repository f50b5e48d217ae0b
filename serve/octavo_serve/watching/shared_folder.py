"""The folder through which workers share their counts: made and removed by their parent.

prometheus-client learns of it from the environment when it is first imported; the parent never imports it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from octavo_artifact.errors import ConfigError

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that prometheus-client reads."""


@contextmanager
def shared_counts() -> Generator[Path]:
    """A private folder, named to the processes that are started meanwhile. Raises ConfigError."""
    try:
        folder = TemporaryDirectory(prefix="octavo-")
    except OSError as error:
        raise ConfigError(
            "no folder for temporary files, in which workers share their counts; set TMPDIR, or `metrics: false`"
        ) from error
    with folder as path:
        os.environ[SHARED] = path
        try:
            yield Path(path)
        finally:
            del os.environ[SHARED]


def forget(folder: Path, pid: int) -> None:
    """Leave a process that is dead out of what the living are; what it counted stays."""
    for path in folder.glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)
