"""What is wrong with an object store, in a few words: it is looked at before anything waits for it.

Hadoop and Spark try again for more than a minute where a store does not answer, and say what it said at the end of a
hundred lines of Java. One look that tries once more at most tells the same within seconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError

from patternlake.delta_tables.databases.store_options import AZURE, GOOGLE, S3, is_object_store, options_of_spark
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ONE_TRY = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.throttle.limit": "1",
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "15s",
}
_NO_CLIENT, _NO_BUCKET, _NO_KEYS, _REFUSED, _DOWN = "no client", "no bucket", "no keys", "refused", "down"
# The first that fits: who has no keys is refused, too.
_CAUSES = {
    _NO_CLIENT: r"ClassNotFoundException: Class (\S+) not found|No FileSystem for scheme \S+",
    _NO_BUCKET: r"NoSuchBucket|UnknownStoreException|bucket does not exist|ContainerNotFound",
    _NO_KEYS: r"NoA(?:uth|ws)\w*Exception|No AWS Credentials|Unable to load credentials|"
    r"credential provider was not enabled|KeyProviderException|fs\.azure\.account\.key|"
    r"Failure to initialize configuration",
    _REFUSED: r"AccessDenied\w*|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|Forbidden|"
    r"Status Code: 40[13]",
    _DOWN: r"Connection refused|UnknownHostException|timed out|Network is unreachable|No route to host|"
    r"dns error|tcp connect error|Service Unavailable|Status Code: 50\d|SlowDown",
}
_STATUS = re.compile(r"Status Code: \d+")
_KEYS = {
    S3: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in storage_options or the environment, or fs.s3a.access.key and "
    "fs.s3a.secret.key in Spark",
    AZURE: "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN in storage_options or the environment, or "
    "fs.azure.account.key.ACCOUNT.dfs.core.windows.net in Spark",
    GOOGLE: "GOOGLE_SERVICE_ACCOUNT in storage_options or the environment, or "
    "fs.gs.auth.service.account.json.keyfile in Spark",
}
_ADDRESS = {
    S3: "`location`, and AWS_ENDPOINT_URL in storage_options or fs.s3a.endpoint in Spark, are right",
    AZURE: "`location` is right",
    GOOGLE: "`location` is right",
}
_CLIENT = {
    S3: "the package org.apache.hadoop:hadoop-aws, in the version of Spark's Hadoop,",
    AZURE: "the package org.apache.hadoop:hadoop-azure, in the version of Spark's Hadoop,",
    GOOGLE: "Google's package gcs-connector",
}


def list_folders(spark: SparkSession, location: str) -> frozenset[str] | None:
    """List the folders that stand at a location of an object store; None elsewhere.

    Raises
    ------
    StateError
        The store does not answer, knows no such bucket, or refuses; the message names it, the cause and the setting.
    """
    if not is_object_store(location):
        return None
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    settings = session.sessionState().newHadoopConf()
    for name, value in _ONE_TRY.items():
        settings.set(name, value)
    path = jvm.org.apache.hadoop.fs.Path(location)
    try:
        store = jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), settings)
        try:
            found = store.listStatus(path)
        finally:
            store.close()
    except Py4JJavaError as error:
        text = _read_causes(error.java_exception)
        explained = explain(location, text, options_of_spark(spark, location).get("AWS_ENDPOINT_URL"))
        if explained is not None:
            raise explained from error
        if "FileNotFoundException" in text:
            return frozenset()
        raise
    return frozenset(each.getPath().getName() for each in found if each.isDirectory())


def explain(location: str, text: str, endpoint: str | None = None) -> StateError | None:
    """Say what is wrong with the store of a location by what Hadoop or delta-rs said of it; None where that is unclear.

    Examples
    --------
    >>> print(explain("s3a://events/lake", "software.amazon.awssdk…: Connection refused", "http://minio:9000"))
    the store of s3a://events/lake at http://minio:9000 does not answer (Connection refused): see whether it runs, and
    whether `location`, and AWS_ENDPOINT_URL in storage_options or fs.s3a.endpoint in Spark, are right
    """
    place = urlsplit(location)
    scheme = place.scheme.lower()
    family = next((each for each in (S3, AZURE, GOOGLE) if scheme in each), S3)
    matches = ((cause, re.search(pattern, text)) for cause, pattern in _CAUSES.items())
    cause, found = next(((cause, found) for cause, found in matches if found is not None), (None, None))
    if found is None:
        return None
    status = _STATUS.search(text)
    said = found[0] if status is None or status[0] == found[0] else f"{found[0]}, {status[0]}"
    store = f"the store of {location}{'' if endpoint is None else f' at {endpoint}'}"
    messages = {
        _NO_CLIENT: f"Spark has no client for {scheme}:// ({said}): add {_CLIENT[family]} to spark.jars.packages "
        "before Spark starts",
        _NO_BUCKET: f"{store} has no bucket {place.netloc!r} ({said}): make it, or see whether {_ADDRESS[family]}",
        _NO_KEYS: f"there are no keys for {store} ({said}): give {_KEYS[family]}",
        _REFUSED: f"{store} refuses access ({said}): see whether the keys may list, read and write there, and are "
        f"right: {_KEYS[family]}",
        _DOWN: f"{store} does not answer ({said}): see whether it runs, and whether {_ADDRESS[family]}",
    }
    return StateError(messages[str(cause)])


def _read_causes(exception: Any) -> str:
    """What an exception of Java's says, and those that caused it."""
    told: list[str] = []
    try:
        while exception is not None and len(told) < 20:
            told.append(str(exception.toString()))
            exception = exception.getCause()
    except Py4JError:
        pass
    return "\n".join(told)
