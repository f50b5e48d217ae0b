"""An onnxruntime session as a server of many threads wants it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def open_session(model: Path) -> Any:
    """Load a model for the CPU. Raises whatever onnxruntime does, whose exceptions share no base but Exception."""
    # Since 1.29 onnxruntime writes a database under ~/.cache and sends from it, unless this is set before its import.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Searches run side by side in threads: one thread each beats splitting a query, and spinning burns the rest.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
