"""Where a server listens and what guards it: said before Spark starts. Nothing here starts Spark."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from patternlake.jobs.command_line import commands
from patternlake.jobs.command_line.serving import settings_of
from patternlake.sql_ext.serving.doors import Doors, check_password_file
from patternlake.udfs.errors import ArgumentError

# openssl passwd -6 -salt saltsalt secret, and with -5 and -apr1
SHA512 = "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"
SHA256 = "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"
MD5 = "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0"
CONFIGURATION = (
    "streams:\n  clicks: {source: {format: csv, path: clicks, options: {header: true}}, time: at, name: page}\n"
)


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    file = tmp_path / "passwords"
    file.write_text(f"# who asks\n\nann:{SHA512}\nben:{SHA256}\n")
    return file


def checked(**given: Any) -> Doors:
    """Doors at free ports, in an environment that says nothing."""
    return Doors(**{"port": 0, "connect_port": 0, **given}).check({})


def refusal(environment: dict[str, str] | None = None, **given: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        Doors(**{"port": 0, "connect_port": 0, **given}).check(environment or {})
    return str(caught.value)


def test_this_machine_alone_is_let_in_unless_told_otherwise() -> None:
    assert Doors().host == "127.0.0.1"
    doors = checked(insecure=True)
    assert doors.hive_settings["hive.server2.thrift.bind.host"] == "127.0.0.1"
    assert doors.spark_settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert doors.spark_settings["spark.hive.server2.thrift.bind.host"] == "127.0.0.1"


def test_port_0_is_any_that_is_free() -> None:
    doors = checked(insecure=True)
    assert doors.port > 0
    assert doors.connect_port > 0
    assert doors.port != doors.connect_port


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_an_address_is_refused_without_a_guard_though_only_this_machine_reaches_it(host: str, passwords: Path) -> None:
    assert refusal(host=host) == (
        f"every user and program that reaches {host} could read everything by JDBC and Spark Connect: --password-file "
        "(password_file) guards both doors, --insecure (insecure) leaves them open on purpose"
    )
    said = refusal(host=host, password_file=passwords, insecure=True)
    assert said.startswith(f"--insecure (insecure) stands beside --password-file {passwords} (password_file)")
    assert "could read and change everything by JDBC and" in refusal(host=host, allow_writes=True)
    assert checked(host="0.0.0.0", insecure=True).host == "0.0.0.0"
    assert checked(host="0.0.0.0", password_file=passwords).host == "0.0.0.0"


def test_hives_own_guard_leaves_spark_connect_open() -> None:
    ldap = {"hive.server2.authentication": "LDAP"}
    assert "by Spark Connect:" in refusal(settings=ldap)
    assert "by JDBC:" in refusal(settings={"spark.connect.authenticate.token": "t"})
    assert "by JDBC and" in refusal(settings={"hive.server2.authentication": "none"})
    both = Doors(port=0, connect_port=0, settings={**ldap, "spark.connect.authenticate.token": "t"})
    assert both.check({}).settings == both.settings
    with_variable = Doors(port=0, connect_port=0, settings=ldap)
    assert with_variable.check({"SPARK_CONNECT_AUTHENTICATE_TOKEN": "t"}).settings == ldap


def test_a_password_file_guards_both_doors(passwords: Path) -> None:
    doors = checked(password_file=passwords, settings={"spark.connect.grpc.interceptor.classes": "org.example.Own"})
    assert doors.hive_settings["hive.server2.authentication"] == "CUSTOM"
    assert doors.hive_settings["hive.server2.custom.authentication.class"] == "patternlake.PasswordFile"
    interceptors = doors.spark_settings["spark.connect.grpc.interceptor.classes"]
    assert interceptors == "patternlake.ConnectReading,patternlake.ConnectPasswords,org.example.Own"


def test_sessions_only_read_unless_they_may_write(passwords: Path) -> None:
    reading = checked(password_file=passwords).spark_settings
    assert reading["spark.sql.runSQLOnFiles"] == "false"
    writing = checked(password_file=passwords, allow_writes=True).spark_settings
    assert "spark.sql.runSQLOnFiles" not in writing
    assert writing["spark.connect.grpc.interceptor.classes"] == "patternlake.ConnectPasswords"
    assert "spark.connect.grpc.interceptor.classes" not in checked(insecure=True, allow_writes=True).spark_settings


@pytest.mark.parametrize("name", ["spark.sql.runSQLOnFiles", "spark.sql.hive.thriftServer.singleSession"])
def test_a_setting_that_would_let_sessions_write_is_refused_unless_they_may(name: str) -> None:
    said = refusal(insecure=True, settings={name: "true"})
    assert said == f"the setting {name} would let sessions write, which --allow-writes says (allow_writes)"
    assert checked(insecure=True, settings={name: "TRUE"}, allow_writes=True).spark_settings[name] == "TRUE"
    assert checked(insecure=True, settings={name: "false"}).spark_settings[name] == "false"


def test_settings_reach_spark_and_hives_server() -> None:
    doors = checked(
        insecure=True, settings={"hive.server2.transport.mode": "http", "spark.sql.shuffle.partitions": "4"}
    )
    assert doors.hive_settings["hive.server2.transport.mode"] == "http"
    assert doors.spark_settings["spark.hive.server2.transport.mode"] == "http"
    assert doors.spark_settings["spark.sql.shuffle.partitions"] == "4"
    assert "hive.server2.transport.mode" not in doors.spark_settings


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hive.server2.thrift.bind.host", "the setting hive.server2.thrift.bind.host stands beside host"),
        ("hive.server2.thrift.port", "the setting hive.server2.thrift.port stands beside port"),
        ("spark.connect.grpc.binding.port", "the setting spark.connect.grpc.binding.port stands beside connect_port"),
        ("spark.hadoop.hive.server2.authentication", "hive.… without what is before it would be right"),
        ("spark.hive.server2.thrift.port", "hive.… without what is before it would be right"),
        ("shuffle", "'shuffle' is no setting of Spark's or Hive's; spark.… or hive.… would be right"),
    ],
)
def test_a_setting_that_says_what_an_argument_says_or_nothing_is_refused(name: str, said: str) -> None:
    assert said in refusal(settings={name: "1"})


@pytest.mark.parametrize(
    "name",
    [
        "hive.server2.authentication",
        "hive.server2.custom.authentication.class",
        "spark.connect.authenticate.token",
    ],
)
def test_a_setting_may_not_undo_the_password_file(name: str, passwords: Path) -> None:
    said = refusal(password_file=passwords, settings={name: "NONE"})
    assert said == f"the setting {name} stands beside a password file; one of the two"


def test_the_environment_may_not_move_or_unlock_a_door(passwords: Path) -> None:
    said = refusal({"HIVE_SERVER2_THRIFT_BIND_HOST": "0.0.0.0"})
    assert said == "the environment's HIVE_SERVER2_THRIFT_BIND_HOST would win over host; unset it"
    assert "HIVE_SERVER2_THRIFT_PORT would win over port" in refusal({"HIVE_SERVER2_THRIFT_PORT": "1"})
    said = refusal({"SPARK_CONNECT_AUTHENTICATE_TOKEN": "t"}, password_file=passwords)
    assert "SPARK_CONNECT_AUTHENTICATE_TOKEN stands beside a password file" in said


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refusal(port=port, insecure=True)
    assert said.startswith(f"cannot listen at 127.0.0.1, port {port}: Address already in use; another port, or 0")


def test_what_is_no_port_or_address_is_named() -> None:
    assert refusal(insecure=True, port=70000) == "70000 is no port; 1 to 65535, or 0 for any that is free"
    assert refusal(insecure=True, connect_port=-1) == "-1 is no connect port; 1 to 65535, or 0 for any that is free"
    assert "port 15002 cannot be that of both" in refusal(insecure=True, port=15002, connect_port=15002)
    assert "cannot listen at no.such.host.invalid, port 0: " in refusal(insecure=True, host="no.such.host.invalid")


@pytest.mark.parametrize("line", ["ann:secret", f"ann:{MD5}", "ann", f":{SHA512}", f"ann:{SHA512[:-60]}", "ann:$6$"])
def test_a_line_of_a_password_file_that_is_none_is_told_by_its_number_alone(line: str, tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"ben:{SHA256}\n{line}\n")
    with pytest.raises(ArgumentError) as caught:
        check_password_file(file)
    assert str(caught.value) == (
        f"line 2 of the password file {file} is not name:hash with a hash as openssl passwd -6 writes it"
    )


def test_a_hash_that_takes_too_long_to_check_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"ann:{SHA512.replace('saltsalt', 'rounds=1000000$saltsalt')}\n")
    check_password_file(file)
    file.write_text(f"ann:{SHA512.replace('saltsalt', 'rounds=1000001$saltsalt')}\n")
    with pytest.raises(ArgumentError, match=r"line 1 of .* has a hash of 1,000,001 rounds.*; 1,000,000 at the most"):
        check_password_file(file)


def test_a_password_file_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    assert f"the password file {file} cannot be read" in refusal(password_file=file)
    file.write_text("# nobody\n")
    assert refusal(password_file=file) == f"the password file {file} has no line name:hash"


def test_settings_are_written_key_value() -> None:
    assert settings_of(["spark.a=1", "hive.b=x=y"]) == {"spark.a": "1", "hive.b": "x=y"}
    for wrong, said in {("spark.a",): "'spark.a' is no setting", ("spark.a=1", "spark.a=2"): "given twice"}.items():
        with pytest.raises(ArgumentError, match=said):
            settings_of(wrong)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "every user and program that reaches 0.0.0.0 could read everything"),
        ([], "every user and program that reaches 127.0.0.1 could read everything"),
        (["--set", "spark.a"], "'spark.a' is no setting; KEY=VALUE would be right"),
        (["--password-file", "nowhere"], "the password file nowhere cannot be read"),
    ],
)
def test_the_command_says_in_one_line_what_it_refuses(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(CONFIGURATION)
    with pytest.raises(SystemExit) as ended:
        commands.main(["serve", "--conf", str(conf), *arguments])
    shown = capsys.readouterr()
    assert ended.value.code == 1
    assert said in shown.err
    assert shown.err.count("\n") == 1
