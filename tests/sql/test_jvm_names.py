"""Names that were looked up in the JVM: a class is asked for once, and what is none each time."""

from __future__ import annotations

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession

from patternlake.delta_tables.spark.jvm_names import remember_names

_GARBAGE = "m\n"
"""What a command begins with that lets go of an object, whenever Python finds that nobody has it any more."""


def test_a_class_and_its_static_methods_are_asked_for_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_names(spark)
    jvm, asked = spark.sparkContext._jvm, []
    assert jvm is not None
    send = GatewayClient.send_command

    def told(client: GatewayClient, command: str, *given: object, **named: object) -> object:
        if not command.startswith(_GARBAGE):
            asked.append(command)
        return send(client, command, *given, **named)

    for place in (GatewayClient, type(spark.sparkContext._gateway._gateway_client)):
        monkeypatch.setattr(place, "send_command", told, raising=False)
    name = "java.util.concurrent.TimeUnit"
    first = getattr(jvm, name).valueOf("DAYS")
    once = len(asked)
    assert getattr(jvm, name).valueOf("DAYS").equals(first)
    assert [command.split("\n")[0] for command in asked[once:]] == ["c", "c"]
    assert getattr(jvm, name).DAYS.equals(first)  # a field is read anew: it may change


def test_a_package_is_none_of_them(spark: SparkSession) -> None:
    remember_names(spark)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    assert jvm.java.util.UUID.fromString("0-0-0-0-1").toString().endswith("1")
    assert "java" not in vars(jvm)
