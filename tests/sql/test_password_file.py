"""Who a password file lets in. No server is started here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from patternlake.sql_ext.serving import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# openssl passwd -6 -salt saltsalt secret, and with -5
SHA512 = "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"
SHA256 = "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"


class Passwords:
    """A file, and whom it lets in."""

    def __init__(self, jvm: Any, file: Path) -> None:
        self._jvm = jvm
        self._file = file
        jvm.java.lang.System.setProperty(jvm.patternlake.PasswordFile.PROPERTY, str(file))

    def write(self, **hashes: str) -> None:
        self._file.write_text("".join(f"{name}:{hashed}\n" for name, hashed in hashes.items()))

    def hash(self, password: str, salt: str = "$6$rounds=1000$saltsalt") -> str:
        return str(self._jvm.org.apache.commons.codec.digest.Crypt.crypt(password, salt))

    def knows(self, user: str | None, password: str | None) -> bool:
        return bool(self._jvm.patternlake.PasswordFile.knows("jdbc", user, password))


@pytest.fixture
def passwords(spark: SparkSession, tmp_path: Path) -> Passwords:
    java_classes.define(spark._jvm, spark.sparkContext._gateway)
    return Passwords(spark._jvm, tmp_path / "passwords")


def test_name_and_password_are_let_in_and_nothing_else(passwords: Passwords) -> None:
    passwords.write(ann=SHA512, ben=SHA256)
    for _ in range(2):  # the second time, it is remembered
        assert passwords.knows("ann", "secret")
        assert passwords.knows("ben", "secret")
        assert not passwords.knows("ann", "secret ")
        assert not passwords.knows("cleo", "secret")
        assert not passwords.knows("ann", "")
        assert not passwords.knows(None, "secret")
        assert not passwords.knows("ann", None)


def test_a_password_has_1024_bytes_at_the_most(passwords: Passwords) -> None:
    """Hashing one takes time by its length, before anybody is let in: a million bytes took 200 seconds."""
    longest, too_long, in_bytes = "x" * 1024, "x" * 1025, "ü" * 513
    passwords.write(ann=passwords.hash(longest), ben=passwords.hash(too_long), cleo=passwords.hash(in_bytes))
    assert passwords.knows("ann", longest)
    assert not passwords.knows("ben", too_long)
    assert not passwords.knows("cleo", in_bytes)


def test_a_hash_that_takes_too_long_to_check_lets_nobody_in(passwords: Passwords) -> None:
    passwords.write(ann=passwords.hash("secret", "$6$rounds=1000001$saltsalt"), ben=passwords.hash("secret"))
    assert not passwords.knows("ann", "secret")
    assert passwords.knows("ben", "secret")


def test_a_change_of_the_file_holds_at_once(passwords: Passwords) -> None:
    passwords.write(ann=SHA512)
    assert passwords.knows("ann", "secret")
    passwords.write(ann=passwords.hash("other"))
    assert not passwords.knows("ann", "secret")
    assert passwords.knows("ann", "other")
    passwords.write(ben=SHA512)
    assert not passwords.knows("ann", "other")


def test_a_file_that_is_gone_or_empty_lets_nobody_in(passwords: Passwords, tmp_path: Path) -> None:
    assert not passwords.knows("ann", "secret")
    passwords.write()
    assert not passwords.knows("ann", "secret")


def test_a_file_that_is_no_text_lets_nobody_in(passwords: Passwords, tmp_path: Path) -> None:
    (tmp_path / "passwords").write_bytes(f"ann:{SHA512}\n".encode() + b"\xff\n")
    assert not passwords.knows("ann", "secret")
