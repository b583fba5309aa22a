"""How to get into an object store, said once: in Spark's words or in delta-rs's, for both.

Spark reads stores through Hadoop, which has settings like ``fs.s3a.access.key``; what is read without Spark goes
through delta-rs, which has options like ``AWS_ACCESS_KEY_ID``. Whichever a user gives, the other follows. Options are
kept in this process, are handed to tasks, and stand in no table, status or log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Ask = Callable[[str], str]
"""From the name of a setting of Hadoop's to its value; empty where there is none."""
S3 = ("s3", "s3a", "s3n")
AZURE = ("abfs", "abfss", "wasb", "wasbs")
GOOGLE = ("gs",)
_OF_S3 = {
    "AWS_ACCESS_KEY_ID": "access.key",
    "AWS_SECRET_ACCESS_KEY": "secret.key",
    "AWS_SESSION_TOKEN": "session.token",
    "AWS_REGION": "endpoint.region",
    "AWS_ENDPOINT_URL": "endpoint",
}
_IDENTITY = frozenset(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"))
"""One identity, which comes from one place: a token of the environment is of no use to another one's keys."""
_HOSTED = "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"
_WAY_IN, _PROVIDER = "fs.azure.account.auth.type", "fs.azure.account.oauth.provider.type"
_OF_CLIENTS = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_TOLD: dict[str, tuple[str, bool]] = {}
"""Settings that were made in this process, and whether of options, not of the environment: new options may change them,
and no others."""
_WITHOUT_SETTING = ("AWS_ALLOW_HTTP", "AZURE_STORAGE_ACCOUNT_NAME")
"""Options that follow from others in Hadoop's words."""
_OF_GOOGLE = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"


def is_object_store(location: str) -> bool:
    """Whether a location is an address in an object store."""
    return urlsplit(location).scheme.lower() in (*S3, *AZURE, *GOOGLE)


def options_of_spark(spark: SparkSession, location: str) -> dict[str, str]:
    """What delta-rs needs to read a location as a session's Spark does; empty where nothing is said of it.

    Examples
    --------
    With ``spark.hadoop.fs.s3a.access.key`` and its fellows set, ``s3a://events/lake`` gives ``AWS_ACCESS_KEY_ID`` and
    its fellows. What a bucket's own settings say, as ``fs.s3a.bucket.events.access.key``, goes before. What Spark does
    not say, the environment may, as ``AWS_REGION``: tasks on other machines have another one.
    """
    if not is_object_store(location):
        return {}
    place = urlsplit(location)
    scheme = place.scheme.lower()
    told = _told_to_spark(spark, location)
    names = [*_settings(scheme, place.netloc, place.hostname or ""), *_WITHOUT_SETTING]
    return _of_environment(names, told) | told


def _told_to_spark(spark: SparkSession, location: str, without: Collection[str] = ()) -> dict[str, str]:
    """What Spark's own settings, but for some, say of a location, in delta-rs's words."""
    session: Any = spark._jsparkSession
    settings = session.sessionState().newHadoopConf()

    def ask(name: str) -> str:
        if name in without:
            return ""
        # Not `get`: secrets may stand in a store of Hadoop's.
        said = settings.getPassword(name)
        # What Hadoop takes where nobody has said anything.
        if said is None or [*(settings.getPropertySources(name) or ())] == ["core-default.xml"]:
            return ""
        return "".join(map(str, said))

    place = urlsplit(location)
    scheme = place.scheme.lower()
    if scheme in S3:
        return _options_of_s3(place.netloc, ask)
    if scheme in AZURE:
        return _options_of_azure(place.hostname or "", ask)
    key_file = next(filter(None, map(ask, _OF_GOOGLE)), "")
    return {"GOOGLE_SERVICE_ACCOUNT": key_file} if key_file else {}


def _of_environment(names: Iterable[str], told: Iterable[str]) -> dict[str, str]:
    """What the environment says of options that are not told elsewhere."""
    known = {name.upper() for name in told}
    if known & _IDENTITY:
        known |= _IDENTITY
    return {name: os.environ[name] for name in names if name in os.environ and name not in known}


def _options_of_s3(bucket: str, ask: _Ask) -> dict[str, str]:
    def of_bucket(name: str) -> str:
        return ask(f"fs.s3a.bucket.{bucket}.{name}") or ask(f"fs.s3a.{name}")

    options = {option: value for option, name in _OF_S3.items() if (value := of_bucket(name))}
    endpoint = options.get("AWS_ENDPOINT_URL")
    if endpoint is not None:
        if "://" not in endpoint:
            plain = of_bucket("connection.ssl.enabled").lower() == "false"
            endpoint = f"{'http' if plain else 'https'}://{endpoint}"
            options["AWS_ENDPOINT_URL"] = endpoint
        if endpoint.startswith("http:"):
            options["AWS_ALLOW_HTTP"] = "true"
        in_path = of_bucket("path.style.access")
        hosted = _negate(in_path) if in_path else os.environ.get(_HOSTED, "true")
        if hosted.lower() == "true":
            # There delta-rs wants the bucket in the endpoint.
            options[_HOSTED] = "true"
            options["AWS_ENDPOINT_URL"] = options["AWS_ENDPOINT_URL"].replace("://", f"://{bucket}.", 1)
    if of_bucket("aws.credentials.provider").strip() == _ANONYMOUS:
        options["AWS_SKIP_SIGNATURE"] = "true"
    return options


def _options_of_azure(host: str, ask: _Ask) -> dict[str, str]:
    account = host.partition(".")[0]
    options = {
        "AZURE_STORAGE_ACCOUNT_KEY": ask(f"fs.azure.account.key.{host}"),
        "AZURE_STORAGE_SAS_TOKEN": ask(f"fs.azure.sas.fixed.token.{host}"),
        "AZURE_STORAGE_CLIENT_ID": ask(f"fs.azure.account.oauth2.client.id.{host}"),
        "AZURE_STORAGE_CLIENT_SECRET": ask(f"fs.azure.account.oauth2.client.secret.{host}"),
    }
    # The place of the tokens names the tenant: https://…/TENANT/oauth2/token.
    tenant = re.search(r"://[^/]+/([^/]+)/", ask(f"fs.azure.account.oauth2.client.endpoint.{host}"))
    if tenant is not None:
        options["AZURE_STORAGE_TENANT_ID"] = tenant[1]
    given = {name: value for name, value in options.items() if value}
    return {"AZURE_STORAGE_ACCOUNT_NAME": account, **given} if given else {}


def tell_spark(spark: SparkSession, location: str, options: Mapping[str, str]) -> None:
    """Let Spark into a location by delta-rs's options, where its own settings say nothing; before it is first read.

    What a bucket's own settings say stays, but for what was told here before; those for all buckets give way to the
    options. What neither says may stand in the environment. Options that Spark has no word for are left to delta-rs.
    New options, or a new environment, replace all that was told of the former; without options, former ones hold.
    """
    place = urlsplit(location)
    known = _settings(place.scheme.lower(), place.netloc, place.hostname or "")
    if not known:
        return
    session: Any = spark._jsparkSession
    told = session.sessionState().newHadoopConf()
    context: Any = spark.sparkContext._jsc
    # The catalog, which makes a database's folder, has a copy of its own.
    kept = (context.hadoopConfiguration(), session.sharedState().hadoopConf())
    host = place.hostname or ""
    names = [*(name for name, _ in known.values()), f"{_WAY_IN}.{host}", f"{_PROVIDER}.{host}"]
    ours = {name for name in names if name in _TOLD and _TOLD[name][0] == told.get(name)}
    if not options:
        ours = {name for name in ours if not _TOLD[name][1]}
    told_before = _told_to_spark(spark, location, without=ours)
    of_environment = _of_environment(known, [*options, *told_before])
    given = of_environment | {name.upper(): value for name, value in options.items()}
    if "AWS_ENDPOINT_URL" in given and not told_before.keys() & {_HOSTED, "AWS_ENDPOINT_URL"}:
        # As delta-rs has it where nobody says otherwise; few stores but Amazon's know buckets by their hosts.
        given.setdefault(_HOSTED, "false")
    settings_of = {known[option][0]: known[option][1](value) for option, value in given.items() if option in known}
    settings_of |= _ways_in(host, given, lambda name: None if name in ours else told.get(name))
    new = {name: value for name, value in settings_of.items() if name in ours or told.get(name) is None}
    gone = ours - new.keys()
    changed = gone or any(told.get(name) not in (None, value) for name, value in new.items())
    for settings in kept:
        for name, value in new.items():
            settings.set(name, value)
        for name in gone:
            settings.unset(name)
    by_environment = {known[option][0] for option in of_environment}
    _TOLD.update({name: (value, bool(options) and name not in by_environment) for name, value in new.items()})
    if changed:
        # Hadoop's client of the store has the keys that it was made with, such as some that have expired.
        jvm: Any = spark._jvm
        jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(location), kept[0]).close()


def _ways_in(host: str, given: Mapping[str, str], ask: Callable[[str], str | None]) -> dict[str, str]:
    """How Azure's client is to use what it is given; without a word, it looks for the account's key."""
    way = f"{_WAY_IN}.{host}"
    if ask(way) is not None or ask(_WAY_IN) is not None:
        return {}
    if "AZURE_STORAGE_SAS_TOKEN" in given:
        return {way: "SAS"}
    if "AZURE_STORAGE_CLIENT_ID" in given:
        return {way: "OAuth", f"{_PROVIDER}.{host}": _OF_CLIENTS}
    return {}


def options_to_read(spark: SparkSession, location: str, given: Mapping[str, str]) -> dict[str, str]:
    """What delta-rs needs to read a location, as `given` and else as Spark says, which was told before."""
    options = {**options_of_spark(spark, location), **{name.upper(): value for name, value in given.items()}}
    endpoint, bucket = options.get("AWS_ENDPOINT_URL", ""), urlsplit(location).netloc
    if options.get(_HOSTED, "").lower() == "true" and endpoint and f"://{bucket}." not in endpoint:
        options["AWS_ENDPOINT_URL"] = endpoint.replace("://", f"://{bucket}.", 1)
    return options


def _settings(scheme: str, bucket: str, host: str) -> dict[str, tuple[str, Callable[[str], str]]]:
    """By option: the setting of Hadoop's, and how its value is made of the option's."""
    if scheme in S3:
        of_bucket = f"fs.s3a.bucket.{bucket}."
        return {
            **{option: (of_bucket + name, str) for option, name in _OF_S3.items()},
            _HOSTED: (f"{of_bucket}path.style.access", _negate),
            "AWS_SKIP_SIGNATURE": (f"{of_bucket}aws.credentials.provider", lambda _: _ANONYMOUS),
        }
    if scheme in AZURE:
        return {
            "AZURE_STORAGE_ACCOUNT_KEY": (f"fs.azure.account.key.{host}", str),
            "AZURE_STORAGE_SAS_TOKEN": (f"fs.azure.sas.fixed.token.{host}", str),
            "AZURE_STORAGE_CLIENT_ID": (f"fs.azure.account.oauth2.client.id.{host}", str),
            "AZURE_STORAGE_CLIENT_SECRET": (f"fs.azure.account.oauth2.client.secret.{host}", str),
            "AZURE_STORAGE_TENANT_ID": (f"fs.azure.account.oauth2.client.endpoint.{host}", _place_of_tokens),
        }
    return {"GOOGLE_SERVICE_ACCOUNT": (_OF_GOOGLE[0], str)} if scheme in GOOGLE else {}


def _negate(value: str) -> str:
    return "false" if value.lower() == "true" else "true"


def _place_of_tokens(tenant: str) -> str:
    return f"https://login.microsoftonline.com/{tenant}/oauth2/token"
