"""Java classes that servers in Spark's JVM want by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from patternlake.delta_tables.spark.java_classes import define as define_all

# A class can be defined only when the one that it extends is there.
_IN_ORDER = (
    "Told",
    "PasswordFile",
    "CallsOfUser",
    "RefusedCalls",
    "ConnectPasswords",
    "Settings",
    "Reading",
    "ReadingRule",
    "RefusedFunction",
    "ReadingRequests",
    "ReadingCalls",
    "ConnectReading",
    "ThriftSessions",
    "PlainError",
    "ThriftQueries",
    "ConnectQueries",
    "Entrance",
    "Doorway",
    "Handshakes",
    "Watch",
    "ShutDoor",
)


def define(jvm: Any, gateway: Any) -> None:
    """Let a JVM know the servers' classes; idempotent.

    Parameters
    ----------
    jvm, gateway
        Of a running session.
    """
    define_all(jvm, gateway, Path(__file__).with_name("java"), _IN_ORDER)
