"""JSON documents in state tables: one text per value, so that equal configurations have equal hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


def to_text(document: Mapping[str, Any]) -> str:
    """Write a document with sorted keys and no spaces.

    Raises
    ------
    TypeError, ValueError
        The document holds what JSON cannot (NaN and infinities included).
    """
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_text(text: str) -> dict[str, Any]:
    """Read a document back."""
    document: dict[str, Any] = json.loads(text)
    return document


def digest(text: str) -> str:
    """SHA-256 of a document's text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def to_array(parts: Sequence[str]) -> str:
    """Write texts as a JSON array, from which they can be told apart whatever they hold."""
    return json.dumps(list(parts), ensure_ascii=False, separators=(",", ":"))
