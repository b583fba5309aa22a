"""Which paths of files come upon a lake, and the pattern that means one file alone."""

from __future__ import annotations

import pytest

from patternlake.jobs.configuration.file_patterns import alone, name_below, reaches


@pytest.mark.parametrize(
    ("path", "lake"),
    [
        ("/data", "/data/lake"),
        ("/data/", "file:///data/lake/"),
        ("file:/data/../data", "/data/lake"),
        ("/", "/data/lake"),
        ("//data", "/data/lake"),
        ("/data/lake", "/data/lake"),
        ("/data/*", "/data/lake"),
        ("/data/*/*", "/data/lake"),
        ("/data/*/*/*.parquet", "/data/lake"),
        ("/data/{raw,lake}", "/data/lake"),
        ("/data/{raw/a,la*}", "/data/lake"),
        ("/data/l[a-c]ke", "/data/lake"),
        ("/data/[^x]ake", "/data/lake"),
        (r"/data\[1\]", "/data[1]/lake"),
        ("s3a://bucket/raw", "s3://bucket/raw/2026/lake"),
        ("/data", "/data/_x=1/lake"),
    ],
)
def test_spark_would_come_upon_the_lake(path: str, lake: str) -> None:
    assert reaches(path, lake, recursive=False, names="")


@pytest.mark.parametrize(
    ("path", "lake"),
    [
        ("/data/raw", "/data/lake"),
        ("/data/la", "/data/lake"),
        ("/data/lake/raw", "/data/lake"),
        ("/data/*.csv", "/data/lake"),
        ("/data/*/*.csv", "/data/lake"),
        ("/data/{clicks.csv}", "/data/lake"),
        ("/data/[^l]ake", "/data/lake"),
        ("/data", "/data/_lake"),
        ("/data", "/data/.hidden/lake"),
        ("/data/{raw", "/data/lake"),
        ("s3a://other/raw", "s3a://bucket/raw/lake"),
        ("s3a://data", "/data/lake"),
    ],
)
def test_spark_would_pass_the_lake_by(path: str, lake: str) -> None:
    assert not reaches(path, lake, recursive=False, names="")


@pytest.mark.parametrize(
    ("names", "reached"),
    [("", True), ("*", True), ("*.parquet", True), ("*.json", True), ("sales-*.parquet", False), ("*.csv", False)],
)
def test_in_all_folders_below_the_names_of_files_decide(names: str, reached: bool) -> None:
    assert reaches("/data", "/data/lake", recursive=True, names=names) is reached


def test_folders_are_in_the_way_whatever_files_are_called() -> None:
    assert reaches("/data", "/data/lake", recursive=False, names="*.csv")


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("/data/clicks.csv", "/data/{clicks.csv}"),
        ("clicks 1.csv", "{clicks 1.csv}"),
        ("/data/a,b.csv", "/data/a[,]b.csv"),
        ("/data/a[1].csv", r"/data/a\[1\].csv"),
        ("/data[1]/a%20b.csv", r"/data\[1\]/a%20b.csv"),
    ],
)
def test_one_file_has_a_pattern_that_means_no_other(file: str, pattern: str) -> None:
    assert alone(file) == pattern


@pytest.mark.parametrize(
    ("path", "file", "name"),
    [
        ("/data", "file:///data/a%20b.csv", "a b.csv"),
        ("/data/", "file:/data/year=2024/a.csv", "year=2024/a.csv"),
        ("/data/*/[ab].csv", "file:/data/x/a.csv", "x/a.csv"),
        ("s3a://bucket/in/*.json", "s3://bucket/in/a.json", "a.json"),
        ("/data", "file:/database/a.csv", None),
        ("/data", "file:/data", None),
    ],
)
def test_a_file_is_named_below_the_folder_that_is_no_pattern(path: str, file: str, name: str | None) -> None:
    assert name_below(path, file) == name
