"""Texts of Arrow whose bytes nobody has checked, as other programs write them to files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

# "café" in Latin-1.
LATIN1 = b"caf\xe9"


def unchecked(values: Sequence[bytes | None], kind: Any = None) -> pa.Array:
    """Bytes as a column of texts, or of another `kind` of texts."""
    kind = pa.string() if kind is None else kind
    stored = pa.array(values, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    return pa.Array.from_buffers(kind, len(stored), stored.buffers())


def nested_texts(values: Sequence[bytes]) -> dict[str, pa.Array]:
    """Columns with these texts in each place where a text may be."""
    texts, ends = unchecked(values), pa.array(range(len(values) + 1), pa.int32())
    numbers = pa.array(range(len(values)))
    return {
        "text": texts,
        "large": unchecked(values, pa.large_string()),
        "record": pa.StructArray.from_arrays([numbers, texts], names=["n", "t"]),
        "list": pa.ListArray.from_arrays(ends, texts),
        "key": pa.MapArray.from_arrays(ends, texts, numbers),
        "value": pa.MapArray.from_arrays(ends, pa.array([f"k{n}" for n in range(len(values))]), texts),
    }
