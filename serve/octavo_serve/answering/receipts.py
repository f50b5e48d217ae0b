"""Receipts: what an answer rests on, in enough words to make its prompt again."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import cast

from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.model import Sampling
from octavo_serve.answering.prompt import TEMPLATE_SHA256, Prompt
from octavo_serve.answering.results import Receipt, ReceiptSampling

FORMAT = 1


def receipt_of(prompt: Prompt, as_of: date, sampling: Sampling, model: str | None, answer: str) -> Receipt:
    """The receipt of an answer that was written to `prompt`."""
    return {
        "format": FORMAT,
        "question": prompt.question,
        "as_of": as_of.isoformat(),
        "passages": [
            {
                "pack": shown.hit["pack"],
                "digest": shown.hit["digest"],
                "source_file": shown.hit["source_file"],
                "fragment_id": shown.hit["fragment_id"],
                "byte_range": shown.hit["byte_range"],
                "shown": len(shown.text),
            }
            for shown in prompt.sources
        ],
        "template_sha256": TEMPLATE_SHA256,
        "fence_seed": prompt.seed,
        "model": model,
        "sampling": cast(ReceiptSampling, asdict(sampling)),
        "prompt_sha256": prompt.sha256,
        "answer_sha256": sha256_hex(answer.encode()),
    }
