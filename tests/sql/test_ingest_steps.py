"""Probabilistic streams: a (key, step) is taken or turned down whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sql.empty_database import common

from patternlake.delta_tables.committing.database import Database
from patternlake.udfs.errors import StateError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


def test_steps_are_taken_or_turned_down_whole(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.stream |= {"step": "t", "probability": "p", "attributes": {}}
    header = "at,what,who,t,p"
    day = "2024-01-01"
    s.write(
        "a.csv",
        f"{day},fits,k,1,0.7",
        f"{day},fits,k,1,0.3000005",
        f"{day},over,k,2,0.7",
        f"{day},over,k,2,0.4",
        f"{day},good beside bad,k,3,0.5",
        f"{day},bad,k,3,1.5",
        f"{day},other key,j,2,0.9",
        f"{day},no key,,2,0.5",
        f"{day},fraction,j,2.5,0.5",
        f"{day},no step,j,,0.5",
        f"{day},nan,i,1,NaN",
        f"{day},open,k,4,0.6",
        header=header,
    )
    first = s.ingest()
    assert (first.rows_in, first.rows_out) == (12, 5)
    assert sorted(s.events("name", "key", "step", "round(probability, 9)"), key=str) == sorted(
        [
            ("fits", "k", 1, 0.30000035),
            ("fits", "k", 1, 0.69999965),
            ("no key", None, 2, 0.5),
            ("open", "k", 4, 0.6),
            ("other key", "j", 2, 0.9),
        ],
        key=str,
    )
    assert _reasons(s) == {
        "over": "sum",
        "good beside bad": "companion",
        "bad": "probability",
        "fraction": "step",
        "no step": "step",
        "nan": "probability",
    }
    s.write(
        "b.csv",
        f"{day},closed,k,3,0.1",
        f"{day},too much for the open step,k,4,0.5",
        f"{day},next,k,5,1",
        f"{day},fits the open step,j,2,0.1",
        header=header,
    )
    second = s.ingest()
    assert (second.rows_in, second.rows_out) == (4, 2)
    assert sorted(row[0] for row in s.events("name", "batch_id") if row[1] == 2) == ["fits the open step", "next"]
    assert _reasons(s)["closed"] == "closed"
    assert _reasons(s)["too much for the open step"] == "sum"
    details = {row["reason"]: row["detail"] for row in s.quarantine()}
    assert details["closed"] == "closed: its key has published step 4"


def test_sums_above_1_within_the_tolerance_are_scaled_to_1_and_others_are_turned_down(
    db: Database, tmp_path: Path
) -> None:
    s = Lake(db, tmp_path)
    s.stream |= {"step": "t", "probability": "p", "attributes": {}}
    header, day = "at,what,who,t,p", "2024-01-01"
    # Sums of 1.001, 1.0011, 1 and 0.9.
    s.write(
        "a.csv", f"{day},a,k,1,0.5005", f"{day},b,k,1,0.5005", f"{day},c,k,2,0.5", f"{day},c,k,2,0.5011", header=header
    )
    s.write("b.csv", f"{day},d,k,3,0.25", f"{day},d,k,3,0.75", f"{day},e,k,4,0.9", header=header)
    s.ingest()
    assert s.events("name", "probability") == [("a", 0.5), ("b", 0.5), ("d", 0.25), ("d", 0.75), ("e", 0.9)]
    assert {row["detail"] for row in s.quarantine()} == {"sum: the probabilities of its key and step sum to 1.0011"}
    # What is published stands: the new rows fill what it leaves.
    s.write("c.csv", f"{day},f,k,4,0.0505", f"{day},g,k,4,0.0505", header=header)
    s.ingest()
    assert [(name, round(share, 12)) for name, share in s.events("name", "probability")][-2:] == [
        ("f", 0.05),
        ("g", 0.05),
    ]
    with pytest.raises(StateError, match="probability_tolerance changed, which would mix events of two meanings"):
        s.ingest(probability_tolerance=0.01)
    assert s.ingest(probability_tolerance=0.01, rebuild=True).rows_quarantined == 0
    with pytest.raises(StateError, match="probability_tolerance changed"):
        s.ingest()
    assert s.ingest(probability_tolerance=0, rebuild=True).rows_quarantined == 7


def test_what_is_impossible_stays_so_behind_a_sum_that_rounding_lets_exceed_1(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.stream |= {"step": "t", "probability": "p", "attributes": {}}
    header, day = "at,what,who,t,p", "2024-01-01"
    s.write("a.csv", f"{day},a,k,1,0.30000000000000004", f"{day},b,k,1,0.7", header=header)
    s.ingest()
    s.write("b.csv", f"{day},c,k,1,0", header=header)
    s.ingest()
    assert s.events("name", "probability")[-1] == ("c", 0)


def _reasons(s: Lake) -> dict[str, str]:
    return {json.loads(row["row"])["what"]: row["reason"] for row in s.quarantine()}
