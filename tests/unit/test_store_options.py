"""Spark's settings of an object store become delta-rs's options, and the other way round."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.delta_tables.databases.store_options import options_of_spark, options_to_read, tell_spark
from patternlake.jobs.configuration.file import Configuration
from patternlake.sql_ext.lakes import enabled
from patternlake.udfs.errors import ConfigurationError

AZURE = "acc.dfs.core.windows.net"


class Spark:
    """A session of which only Hadoop's settings are there, `defaults` those that nobody has set.

    Texts of secrets come as arrays of letters.
    """

    def __init__(self, defaults: tuple[str, ...] = (), **settings: str) -> None:
        self.settings = {name.replace("__", "."): value for name, value in settings.items()}
        told = SimpleNamespace(
            getPassword=lambda name: list(self.settings[name]) if name in self.settings else None,
            get=self.settings.get,
            set=self.settings.__setitem__,
            unset=lambda name: self.settings.pop(name, None),
            getPropertySources=lambda name: ["core-default.xml" if name in defaults else "programmatically"],
        )
        self._jsparkSession = SimpleNamespace(
            sessionState=lambda: SimpleNamespace(newHadoopConf=lambda: told),
            sharedState=lambda: SimpleNamespace(hadoopConf=lambda: told),
        )
        self.sparkContext = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: told))
        self.closed: list[str] = []
        clients = SimpleNamespace(get=lambda place, _: SimpleNamespace(close=lambda: self.closed.append(place)))
        self._jvm = SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(FileSystem=clients)))),
            java=SimpleNamespace(net=SimpleNamespace(URI=str)),
        )


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("location", "settings", "options"),
    [
        ("/lake", {"fs.s3a.access.key": "k"}, {}),
        ("hdfs://name/lake", {"fs.s3a.access.key": "k"}, {}),
        ("s3a://b/lake", {}, {}),
        (
            "s3a://b/lake",
            {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s", "fs.s3a.endpoint.region": "eu"},
            {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu"},
        ),
        ("s3://b/lake", {"fs.s3a.access.key": "k", "fs.s3a.bucket.b.access.key": "b's"}, {"AWS_ACCESS_KEY_ID": "b's"}),
        (
            "s3a://b/lake",
            {"fs.s3a.endpoint": "http://minio:9000", "fs.s3a.path.style.access": "true"},
            {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_ALLOW_HTTP": "true"},
        ),
        (
            "s3a://b/lake",
            {"fs.s3a.endpoint": "store:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {
                "AWS_ENDPOINT_URL": "http://b.store:9000",
                "AWS_ALLOW_HTTP": "true",
                "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
            },
        ),
        (
            "s3a://open/lake",
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"AWS_SKIP_SIGNATURE": "true"},
        ),
        (
            f"abfss://c@{AZURE}/lake",
            {f"fs.azure.account.key.{AZURE}": "k"},
            {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_ACCOUNT_KEY": "k"},
        ),
        (
            f"abfss://c@{AZURE}/lake",
            {
                f"fs.azure.account.oauth2.client.id.{AZURE}": "me",
                f"fs.azure.account.oauth2.client.endpoint.{AZURE}": "https://login.microsoftonline.com/T/oauth2/token",
            },
            {
                "AZURE_STORAGE_ACCOUNT_NAME": "acc",
                "AZURE_STORAGE_CLIENT_ID": "me",
                "AZURE_STORAGE_TENANT_ID": "T",
            },
        ),
        (
            "gs://b/lake",
            {"fs.gs.auth.service.account.json.keyfile": "/key.json"},
            {"GOOGLE_SERVICE_ACCOUNT": "/key.json"},
        ),
    ],
)
def test_options_follow_from_settings(location: str, settings: dict[str, str], options: dict[str, str]) -> None:
    spark: Any = Spark(**settings)
    assert options_of_spark(spark, location) == options


def test_what_spark_does_not_say_the_environment_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    spark: Any = Spark(**{"fs.s3a.access.key": "Spark's"})
    assert options_of_spark(spark, "s3a://b/lake") == {"AWS_REGION": "us", "AWS_ACCESS_KEY_ID": "Spark's"}


@pytest.mark.parametrize("said", [True, False], ids=["Spark was told", "Hadoop's own"])
def test_where_the_bucket_stands_the_environment_says_unless_spark_was_told(
    monkeypatch: pytest.MonkeyPatch, said: bool
) -> None:
    """Spark itself takes keys and an endpoint from the environment, and not this."""
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false")
    style = "fs.s3a.path.style.access"
    spark: Any = Spark(() if said else (style,), **{"fs.s3a.endpoint": "http://minio:9000", style: "false"})
    tell_spark(spark, "s3a://b/lake", {})
    assert spark.settings.get("fs.s3a.bucket.b.path.style.access") == (None if said else "true")
    options = options_of_spark(spark, "s3a://b/lake")
    assert options["AWS_ENDPOINT_URL"] == ("http://b.minio:9000" if said else "http://minio:9000")
    assert options.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false") == ("true" if said else "false")


def test_settings_follow_from_options_for_one_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us")
    spark: Any = Spark()
    options = {"aws_access_key_id": "k", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false", "TIMEOUT": "5s"}
    tell_spark(spark, "s3a://b/lake", options)
    assert spark.settings == {
        "fs.s3a.bucket.b.access.key": "k",
        "fs.s3a.bucket.b.path.style.access": "true",
        "fs.s3a.bucket.b.endpoint.region": "us",
    }


def test_what_spark_was_told_of_the_bucket_stays() -> None:
    spark: Any = Spark(**{"fs.s3a.bucket.b.access.key": "its own"})
    tell_spark(spark, "s3a://b/lake", {"AWS_ACCESS_KEY_ID": "k"})
    assert spark.settings == {"fs.s3a.bucket.b.access.key": "its own"}


@pytest.mark.parametrize("options", [{}, {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}])
def test_the_environment_says_nothing_that_spark_or_the_options_say(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.setenv(name, "of the environment")
    told = {} if options else {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
    spark: Any = Spark(**told, **{"fs.s3a.endpoint.region": "eu"})
    tell_spark(spark, "s3a://b/lake", options)
    prefix = "fs.s3a.bucket.b." if options else "fs.s3a."
    assert spark.settings == {f"{prefix}access.key": "k", f"{prefix}secret.key": "s", "fs.s3a.endpoint.region": "eu"}
    assert options_of_spark(spark, "s3a://b/lake") == {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "eu",
    }


def test_options_of_a_configuration_take_variables_and_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_KEY", "hidden")
    given = Configuration.from_text("storage_options: {AWS_ACCESS_KEY_ID: '${LAKE_KEY}', AWS_ALLOW_HTTP: true}")
    assert given.storage_options == {"AWS_ACCESS_KEY_ID": "hidden", "AWS_ALLOW_HTTP": "true"}
    assert "hidden" not in repr(given)


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"storage_options.*'NOT_SET_ANYWHERE', which is not set"):
        Configuration.from_text("storage_options: {AWS_ACCESS_KEY_ID: '${NOT_SET_ANYWHERE}'}")


@pytest.mark.parametrize(
    ("options", "style", "of_reader"),
    [
        ({}, "true", {"AWS_ENDPOINT_URL": "http://minio:9000"}),
        (
            {"aws_virtual_hosted_style_request": "true"}, "false",
            {"AWS_ENDPOINT_URL": "http://b.minio:9000", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"},
        ),
        (
            {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}, "true",
            {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"},
        ),
    ],
)  # fmt: skip
def test_both_look_for_the_bucket_in_one_place(options: dict[str, str], style: str, of_reader: dict[str, str]) -> None:
    spark: Any = Spark(("fs.s3a.path.style.access",), **{"fs.s3a.path.style.access": "false"})
    given = {"AWS_ENDPOINT_URL": "http://minio:9000", **options}
    tell_spark(spark, "s3a://b/lake", given)
    assert spark.settings["fs.s3a.bucket.b.path.style.access"] == style
    assert options_to_read(spark, "s3a://b/lake", given) == {"AWS_ALLOW_HTTP": "true", **of_reader}


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({"AZURE_STORAGE_SAS_TOKEN": "t"}, {"fs.azure.account.auth.type": "SAS"}),
        (
            {"AZURE_STORAGE_CLIENT_ID": "me", "AZURE_STORAGE_CLIENT_SECRET": "s", "AZURE_STORAGE_TENANT_ID": "T"},
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type":
                    "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
            },
        ),
        ({"AZURE_STORAGE_ACCOUNT_KEY": "k"}, {}),
    ],
)  # fmt: skip
def test_azure_is_told_how_to_use_what_it_is_given(options: dict[str, str], way: dict[str, str]) -> None:
    spark: Any = Spark()
    tell_spark(spark, f"abfss://c@{AZURE}/lake", options)
    told = {name: value for name, value in spark.settings.items() if ".type." in name}
    assert told == {f"{name}.{AZURE}": value for name, value in way.items()}
    spark = Spark(**{"fs.azure.account.auth.type": "Custom"})
    tell_spark(spark, f"abfss://c@{AZURE}/lake", options)
    assert not any(".type." in name for name in spark.settings)


def test_new_keys_take_the_place_of_those_told_before() -> None:
    spark: Any = Spark()
    for key in ("old", "old", "new"):
        tell_spark(spark, "s3a://renewed/lake", {"AWS_SESSION_TOKEN": key})
        assert spark.settings["fs.s3a.bucket.renewed.session.token"] == key
    assert spark.closed == ["s3a://renewed/lake"]
    spark.settings["fs.s3a.bucket.renewed.session.token"] = "the user's"
    tell_spark(spark, "s3a://renewed/lake", {"AWS_SESSION_TOKEN": "newer"})
    assert spark.settings["fs.s3a.bucket.renewed.session.token"] == "the user's"


def test_new_keys_of_the_environment_take_the_place_of_its_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = Spark()
    _set_keys(monkeypatch, "old")
    tell_spark(spark, "s3a://b/lake", {})
    _set_keys(monkeypatch, "new")
    tell_spark(spark, "s3a://b/lake", {})
    keys = {"access.key": "new key", "secret.key": "new secret", "session.token": "new token"}
    assert spark.settings == {f"fs.s3a.bucket.b.{name}": value for name, value in keys.items()}
    assert spark.closed == ["s3a://b/lake"]
    assert options_of_spark(spark, "s3a://b/lake") == {
        "AWS_ACCESS_KEY_ID": "new key",
        "AWS_SECRET_ACCESS_KEY": "new secret",
        "AWS_SESSION_TOKEN": "new token",
    }
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    tell_spark(spark, "s3a://b/lake", {})
    assert "fs.s3a.bucket.b.session.token" not in spark.settings


def test_options_that_are_given_no_longer_are_forgotten() -> None:
    spark: Any = Spark(**{"fs.s3a.endpoint": "https://for-all"})
    first = {"AWS_ACCESS_KEY_ID": "1", "AWS_SECRET_ACCESS_KEY": "1", "AWS_SESSION_TOKEN": "1"}
    tell_spark(spark, "s3a://b/lake", {**first, "AWS_ENDPOINT_URL": "http://minio:9000"})
    tell_spark(spark, "s3a://b/lake", {"AWS_ACCESS_KEY_ID": "2", "AWS_SECRET_ACCESS_KEY": "2"})
    assert spark.settings == {
        "fs.s3a.endpoint": "https://for-all",
        "fs.s3a.bucket.b.access.key": "2",
        "fs.s3a.bucket.b.secret.key": "2",
    }
    assert spark.closed == ["s3a://b/lake"]


def test_options_stay_where_later_calls_give_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session was started with holds for the jobs of a configuration that says nothing of the store."""
    spark: Any = Spark()
    tell_spark(spark, "s3a://b/lake", {"AWS_ACCESS_KEY_ID": "given", "AWS_SECRET_ACCESS_KEY": "given"})
    _set_keys(monkeypatch, "environment's")
    tell_spark(spark, "s3a://b/lake", {})
    assert spark.settings == {"fs.s3a.bucket.b.access.key": "given", "fs.s3a.bucket.b.secret.key": "given"}
    assert spark.closed == []


def test_azure_is_told_another_way_in_where_it_is_given_one() -> None:
    spark: Any = Spark()
    tell_spark(spark, f"abfss://c@{AZURE}/lake", {"AZURE_STORAGE_SAS_TOKEN": "t"})
    tell_spark(spark, f"abfss://c@{AZURE}/lake", {"AZURE_STORAGE_ACCOUNT_KEY": "k"})
    assert spark.settings == {f"fs.azure.account.key.{AZURE}": "k"}


def test_functions_read_with_the_keys_of_the_last_call(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = SimpleNamespace(get=lambda *_: None, set=lambda *_: None)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(applicationId="of keys"), conf=conf)
    monkeypatch.setitem(enabled._APPLICATIONS, "of keys", {})

    def enable(given: dict[str, str] | None, **options: str) -> dict[str, str]:
        reader = SimpleNamespace(on_disk=False, place=("s3://b/lake", options))
        database: Any = SimpleNamespace(spark=spark, name="lake", location="s3a://b/lake", direct=reader)
        enabled.use(database, given)
        direct = enabled._APPLICATIONS["of keys"]["lake"].direct
        assert direct is not None
        return direct.place[1]

    given = {"AWS_ACCESS_KEY_ID": "1", "TIMEOUT": "5s"}
    assert enable(given, **given) == given
    assert enable(None, AWS_ACCESS_KEY_ID="1") == given, "Spark has no word for the others"
    assert enable(None, AWS_ACCESS_KEY_ID="2") == {"AWS_ACCESS_KEY_ID": "2"}


def _set_keys(monkeypatch: pytest.MonkeyPatch, whose: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"{whose} key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{whose} secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", f"{whose} token")
