"""What Hadoop and delta-rs say of a store becomes a line that names the store, the cause and the setting."""

from __future__ import annotations

import pytest

from patternlake.delta_tables.databases.store_errors import explain

S3 = "s3a://events/lake"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "java.nio.file.AccessDeniedException: s3a://events/lake: getFileStatus on s3a://events/lake:\n"
            "S3Exception: Forbidden (Service: S3, Status Code: 403, Request ID: null)",
            ("refuses access (AccessDeniedException, Status Code: 403)", "AWS_ACCESS_KEY_ID", "fs.s3a.access.key"),
        ),
        (
            "AccessDeniedException: events: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS Credentials "
            "provided by TemporaryAWSCredentialsProvider",
            ("there are no keys for the store of s3a://events/lake", "AWS_SECRET_ACCESS_KEY", "fs.s3a.secret.key"),
        ),
        ("Kernel error: the credential provider was not enabled", ("there are no keys",)),
        (
            "UnknownStoreException: `s3a://events/lake': The specified bucket does not exist (Status Code: 404)",
            ("has no bucket 'events'", "make it", "fs.s3a.endpoint"),
        ),
        ("client error (Connect)\ntcp connect error\nConnection refused (os error 111)", ("does not answer",)),
        ("UnknownHostException: minio", ("does not answer (UnknownHostException)", "AWS_ENDPOINT_URL")),
        (
            "RuntimeException: ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            ("Spark has no client for s3a://", "org.apache.hadoop:hadoop-aws", "spark.jars.packages"),
        ),
    ],
)
def test_cause_and_setting_are_named(text: str, parts: tuple[str, ...]) -> None:
    told = str(explain(S3, text))
    assert [part for part in parts if part not in told] == []


def test_other_stores_have_settings_of_their_own() -> None:
    refused = "Status Code: 403"
    assert "fs.azure.account.key" in str(explain("abfss://lake@acc.dfs.core.windows.net/x", refused))
    assert "GOOGLE_SERVICE_ACCOUNT" in str(explain("gs://bucket/x", refused))


def test_what_is_unclear_stays_as_it_is() -> None:
    assert explain(S3, "java.io.FileNotFoundException: No such file or directory: s3a://events/lake") is None
