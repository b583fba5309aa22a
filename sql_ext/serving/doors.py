"""Who may come in where, and do what: the addresses that a server listens at, and what guards them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from patternlake.udfs.errors import ArgumentError

_AUTHENTICATION = "hive.server2.authentication"
_PROVIDER = "hive.server2.custom.authentication.class"
_TOKEN = "spark.connect.authenticate.token"
_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_INTERCEPTORS = "spark.connect.grpc.interceptor.classes"
_OPEN = ("NONE", "NOSASL")
# What keeps sessions from writing would not hold with these.
_READING = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.hive.thriftServer.singleSession": "false",
    # What is asked is looked at as it comes.
    "spark.connect.session.planCompression.threshold": "-1",
}
_HIVES = ("spark.hive.", "spark.hadoop.hive.")
# Settings, and variables that Hive would take before them, which the doors' own arguments say.
_SAID_OTHERWISE = {
    "hive.server2.thrift.bind.host": "host",
    "hive.server2.thrift.port": "port",
    "hive.server2.thrift.http.port": "port",
    "spark.connect.grpc.binding.address": "host",
    "spark.connect.grpc.binding.port": "connect_port",
}
_VARIABLES = {"HIVE_SERVER2_THRIFT_BIND_HOST": "host", "HIVE_SERVER2_THRIFT_PORT": "port"}
# SHA-256 and SHA-512 as crypt(3) writes them: $5$ or $6$, perhaps rounds, salt, hash.
_LINE = re.compile(r"[^:\s]+:\$[56]\$(?:rounds=(\d+)\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{43,86}")
_MOST_ROUNDS = 1_000_000
"""Half a second for a check; PasswordFile.java has it, too."""
_PORTS = 1 << 16


@dataclass(frozen=True)
class Doors:
    """Where a server listens, and what guards it.

    Attributes
    ----------
    host
        Address, or a name of one.
    port, connect_port
        Of Hive's Thrift protocol (JDBC, ODBC), and of Spark Connect; 0: a free one is taken.
    password_file
        Lines ``name:hash``, the hash as ``openssl passwd -6`` writes it; None: nobody is asked for a password.
    insecure
        Whether to listen with nothing that guards a door.
    settings
        Further settings: Spark's, and Hive's (``hive.…``).
    allow_writes
        Whether sessions may do all that Spark may; else they only read what is there.
    """

    host: str = "127.0.0.1"
    port: int = 10000
    connect_port: int = 15002
    password_file: Path | None = None
    insecure: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    allow_writes: bool = False

    def check(self, environment: Mapping[str, str] = os.environ) -> Doors:
        """These doors with free ports in the place of 0.

        Raises
        ------
        ArgumentError
            A port is none, or taken; the address is not this machine's; a door is unguarded; a setting contradicts, or
            is neither Spark's nor Hive's; the password file cannot be read, or has a line that is none.
        """
        self._check_settings(environment)
        if self.password_file is not None:
            check_password_file(self.password_file)
            if self.insecure:
                raise ArgumentError(
                    f"--insecure (insecure) stands beside --password-file {self.password_file} (password_file), which "
                    "guards both doors; leave one of them out"
                )
        open_doors = self._find_unguarded(environment)
        if open_doors and not self.insecure:
            what = "read and change" if self.allow_writes else "read"
            raise ArgumentError(
                f"every user and program that reaches {self.host} could {what} everything by "
                f"{' and '.join(open_doors)}: --password-file (password_file) guards both doors, --insecure (insecure) "
                "leaves them open on purpose"
            )
        if self.port == self.connect_port != 0:
            raise ArgumentError(f"port {self.port} cannot be that of both JDBC and Spark Connect")
        port = free_port(self.host, self.port, "port")
        connect_port = free_port(self.host, self.connect_port, "connect port")
        return replace(self, port=port, connect_port=connect_port)

    def _check_settings(self, environment: Mapping[str, str]) -> None:
        for name in self.settings:
            if name.startswith(_HIVES):
                raise ArgumentError(
                    f"the setting {name} is one of Hive's; hive.… without what is before it would be right"
                )
            if not name.startswith(("spark.", "hive.")):
                raise ArgumentError(f"{name!r} is no setting of Spark's or Hive's; spark.… or hive.… would be right")
            if name in _SAID_OTHERWISE:
                raise ArgumentError(
                    f"the setting {name} stands beside {_SAID_OTHERWISE[name]}, which says the same; leave it out"
                )
            if name in _READING and not self.allow_writes and self.settings[name].lower() != _READING[name]:
                raise ArgumentError(
                    f"the setting {name} would let sessions write, which --allow-writes says (allow_writes)"
                )
        for name, said in _VARIABLES.items():
            if environment.get(name):
                raise ArgumentError(f"the environment's {name} would win over {said}; unset it")
        if self.password_file is not None:
            for name in (_AUTHENTICATION, _PROVIDER, _TOKEN):
                if name in self.settings:
                    raise ArgumentError(f"the setting {name} stands beside a password file; one of the two")
            if environment.get(_TOKEN_VARIABLE):
                raise ArgumentError(f"the environment's {_TOKEN_VARIABLE} stands beside a password file; unset it")

    def _find_unguarded(self, environment: Mapping[str, str]) -> list[str]:
        """The doors that everybody comes in by."""
        if self.password_file is not None:
            return []
        found = []
        if self.settings.get(_AUTHENTICATION, "NONE").upper() in _OPEN:
            found.append("JDBC")
        if not self.settings.get(_TOKEN) and not environment.get(_TOKEN_VARIABLE):
            found.append("Spark Connect")
        return found

    @property
    def hive_settings(self) -> dict[str, str]:
        """Hive's settings."""
        own = {
            "hive.server2.thrift.bind.host": self.host,
            "hive.server2.thrift.port": str(self.port),
            "hive.server2.thrift.http.port": str(self.port),
        }
        if self.password_file is not None:
            own |= {_AUTHENTICATION: "CUSTOM", _PROVIDER: "patternlake.PasswordFile"}
        return {**own, **{name: value for name, value in self.settings.items() if name.startswith("hive.")}}

    @property
    def spark_settings(self) -> dict[str, str]:
        """Settings that the session is started with."""
        own = {
            "spark.connect.grpc.binding.address": self.host,
            "spark.connect.grpc.binding.port": str(self.connect_port),
            # Clients show it behind each error, whose message says all that a person can use.
            "spark.sql.connect.serverStacktrace.enabled": "false",
        }
        given = {name: value for name, value in self.settings.items() if name.startswith("spark.")}
        # The last one is the first that a call comes to.
        interceptors = [given.pop(_INTERCEPTORS, "")]
        if self.password_file is not None:
            interceptors.insert(0, "patternlake.ConnectPasswords")
        if not self.allow_writes:
            interceptors.insert(0, "patternlake.ConnectReading")
            own |= _READING
        if any(interceptors):
            own[_INTERCEPTORS] = ",".join(filter(None, interceptors))
        # Of all places that Hive's server has its settings from, this is the last one.
        hive = {f"spark.{name}": value for name, value in self.hive_settings.items()}
        return {**own, **hive, **given}


def free_port(host: str, port: int, name: str) -> int:
    """A port that can be listened at: the one that is given, or any for 0.

    Raises
    ------
    ArgumentError
        It is none, or taken; or the address is not this machine's.
    """
    if not 0 <= port < _PORTS:
        raise ArgumentError(f"{port} is no {name}; 1 to {_PORTS - 1}, or 0 for any that is free")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            return int(found.getsockname()[1])
    except OSError as error:
        raise ArgumentError(
            f"cannot listen at {host}, {name} {port}: {error.strerror}; another {name}, or 0 for any that is free"
        ) from None


def check_password_file(file: Path) -> None:
    """Refuse a password file that cannot be read, has no line, or one that is not ``name:hash``.

    Raises
    ------
    ArgumentError
        Names the file and the line's number, never what stands there.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"the password file {file} cannot be read: {error}") from None
    found = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    entries = [(number, line) for number, line in found if line and not line.startswith("#")]
    if not entries:
        raise ArgumentError(f"the password file {file} has no line name:hash")
    for number, line in entries:
        written = _LINE.fullmatch(line)
        if not written:
            raise ArgumentError(
                f"line {number} of the password file {file} is not name:hash with a hash as openssl passwd -6 writes it"
            )
        if written[1] and int(written[1]) > _MOST_ROUNDS:
            raise ArgumentError(
                f"line {number} of the password file {file} has a hash of {int(written[1]):,} rounds, which keep the "
                f"server at work for a check; {_MOST_ROUNDS:,} at the most"
            )
