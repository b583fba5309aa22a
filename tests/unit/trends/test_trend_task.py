"""Parts of an answer: partitions and blocks of windows answered apart give what all together give."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive import trends as naive
from naive.trend_cases import ATTRIBUTES, compiled, random_events, random_query
from unit.trends.test_trend_vertex_rows import columns, table_rows

from patternlake.udfs.digits import number_of
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.sharing import Cell, Share, picks, shares
from patternlake.udfs.trends.task import count_trends, list_trends, pick_trends
from patternlake.udfs.trends.vertex_rows import Layout, vertex_rows


def dealt(
    layout: Layout, rows: dict[str, pa.Array], block: int, parts: int, rng: random.Random
) -> list[dict[str, Any]]:
    """Vertices as `cet_count` deals them out: by partition and block, once for each block."""
    windows = Windows.of(layout.query)
    row, window = windows.spread(rows["pane"].to_numpy().astype(np.int64))
    pairs = sorted({(at, number // block) for at, number in zip(row.tolist(), window.tolist(), strict=True)})
    portion = {}
    for at, number in pairs:
        portion.setdefault((tuple(rows["part"][at].as_py()), number), rng.randrange(parts))
    found = []
    for wanted in range(parts):
        mine = [(at, b) for at, b in pairs if portion[tuple(rows["part"][at].as_py()), b] == wanted]
        rng.shuffle(mine)
        if mine:
            taken = pa.array([at for at, _ in mine])
            one = {name: column.take(taken) for name, column in rows.items()}
            found.append(one | {"block": pa.array([b for _, b in mine], pa.int64())})
    return found


@pytest.mark.parametrize("seed", range(120))
def test_portions_together_give_the_answer_of_all(seed: int) -> None:
    rng = random.Random(seed)
    query, events = random_query(rng), random_events(rng, rng.randint(1, 14))
    question = compiled(query.text())
    layout = Layout(question, ATTRIBUTES)
    asked = TrendsRequest(layout, None, None, -(2**60), 2**60, rng.randint(1, 4), 10**6, False)
    rows = columns([vertex_rows(layout, table_rows(events))])
    wanted = {(key, window or 0, row) for (key, window), found in naive.trends(query, events).items() for row in found}
    listed, counted = set(), 0
    for part in dealt(layout, rows, asked.block, 3, rng):
        total = sum(int(trends) for trends in count_trends(asked, part)["trends"].to_pylist())
        counted += total
        cut = rng.randint(0, total)
        for low, high in ((0, cut), (cut, total)):
            found = [row for rows in list_trends(asked, part, [(low, high)]) for row in rows.to_pylist()]
            assert len(found) == high - low
            listed |= {(row["key"], row["window"], tuple(row["positions"])) for row in found}
        numbers = [rng.randrange(total) for _ in range(min(total, 5))]
        whole = [row for rows in list_trends(asked, part, [(0, total)]) for row in rows.to_pylist()]
        picked = [row for rows in pick_trends(asked, part, numbers) for row in rows.to_pylist()]
        assert picked == [whole[number] for number in numbers]
    assert listed == wanted
    assert counted == len(wanted)


def test_windows_that_were_not_asked_for_are_left_out() -> None:
    question = compiled("PATTERN E+ e[] WITHIN 2 SEC SLIDE 1 SEC")
    layout = Layout(question, ATTRIBUTES)
    events = [naive.Event(at + 1, at * 1_000_000, "E") for at in range(6)]
    rows = columns([vertex_rows(layout, table_rows(events))]) | {"block": pa.array([0] * 6, pa.int64())}
    answer = count_trends(TrendsRequest(layout, None, 4_000_000, 1, 3, 100, 10, False), rows).to_pylist()
    assert [(row["window"], row["trends"], row["longest"], row["final"]) for row in answer] == [
        (1, "1", 2, True),
        (2, "1", 2, True),
        (3, "1", 2, False),
    ]


CELLS = [Cell(0, "b", 0, 3), Cell(0, "b", 1, 2), Cell(1, None, 0, 4), Cell(1, "a", 7, 10**30), Cell(1, "c", 0, 1)]


def test_too_many_trends_are_refused_with_their_number() -> None:
    with pytest.raises(ArgumentError, match=f"the query has {10**30 + 10} trends, more than max_trends = 9; raise"):
        shares(CELLS, 9, truncate=False)


def test_counts_of_thousands_of_digits_are_exact() -> None:
    layout = Layout(compiled("PATTERN E+ e[]"), ATTRIBUTES)
    events = [naive.Event(at + 1, at, "E") for at in range(14_400)]
    rows = columns([vertex_rows(layout, table_rows(events))]) | {"block": pa.array([0] * len(events), pa.int64())}
    (row,) = count_trends(TrendsRequest(layout, None, None, -(2**60), 2**60, 1, 10, False), rows).to_pylist()
    assert number_of(row["trends"]) == 2**14_398
    assert number_of(row["total_length"]) == 2 * 2**14_398 + 14_398 * 2**14_397
    with pytest.raises(ArgumentError, match=r"the query has about 10\^4334 trends, more than max_trends = 10; raise"):
        shares([Cell(0, None, 0, number_of(row["trends"]))], 10, truncate=False)


def test_the_first_trends_by_partition_and_window_are_taken() -> None:
    assert shares(CELLS, 9, truncate=True) == ([Share(1, 0, 9)], True)
    few = [cell for cell in CELLS if cell.key != "a"]
    assert shares(few, 8, truncate=True) == ([Share(0, 0, 4), Share(1, 0, 4)], True)
    assert shares(few, 10, truncate=False) == ([Share(0, 0, 5), Share(1, 0, 5)], False)


def test_windows_that_are_not_allowed_keep_their_numbers() -> None:
    few = [cell for cell in CELLS if cell.key != "a"]
    assert shares(few, 10, truncate=False, allowed=[0]) == ([Share(0, 0, 3), Share(1, 0, 5)], False)
    assert shares(few, 10, truncate=False, allowed=[1]) == ([Share(0, 3, 5)], False)


def test_a_page_begins_behind_the_trends_that_are_passed_over() -> None:
    few = [cell for cell in CELLS if cell.key != "a"]
    assert shares(few, 3, truncate=True, passed=3) == ([Share(0, 0, 2), Share(1, 3, 4)], True)
    assert shares(few, 3, truncate=True, passed=8) == ([Share(0, 4, 5), Share(1, 4, 5)], False)
    assert shares(few, 3, truncate=False, passed=9) == ([Share(1, 4, 5)], False)
    assert shares(few, 3, truncate=False, passed=10**30) == ([], False)
    with pytest.raises(ArgumentError, match="the query has 10 trends, 8 of them from from_trend = 3 on, more than max"):
        shares(few, 3, truncate=False, passed=2)


def test_pages_together_are_all_trends() -> None:
    few = [cell for cell in CELLS if cell.key != "a"]
    pages = [shares(few, 3, truncate=True, passed=passed)[0] for passed in range(0, 10, 3)]
    listed = [(share.part, at) for page in pages for share in page for at in range(share.low, share.high)]
    assert sorted(listed) == [(0, at) for at in range(5)] + [(1, at) for at in range(5)]


def test_each_set_of_trends_is_drawn_as_often_as_any_other() -> None:
    cells = [Cell(0, "b", 0, 1), Cell(1, "a", 0, 2), Cell(0, "c", 0, 1)]
    drawn = Counter(str(sorted(picks(cells, 2, f"seed {seed}")[0].items())) for seed in range(3000))
    assert len(drawn) == 6
    assert all(400 < often < 600 for often in drawn.values()), drawn


def test_what_is_drawn_does_not_depend_on_the_parts() -> None:
    one = [Cell(0, "a", 0, 10**40), Cell(0, "b", 0, 10**40)]
    two = [Cell(3, "b", 0, 10**40), Cell(1, "a", 0, 10**40)]
    (numbers,), more = [*picks(one, 20, "s")[0].values()], picks(one, 20, "s")[1]
    dealt, _ = picks(two, 20, "s")
    assert sorted([*dealt[1], *(10**40 + number for number in dealt[3])]) == numbers
    assert (len(set(numbers)), more) == (20, True)
    assert picks(one, 20, "t")[0] != picks(one, 20, "s")[0]


def test_where_there_are_no_more_all_are_drawn() -> None:
    few = [cell for cell in CELLS if cell.key != "a"]
    assert picks(few, 10, "s") == ({0: [0, 1, 2, 3, 4], 1: [0, 1, 2, 3, 4]}, False)
    assert picks(few, 99, "s", allowed=[1]) == ({0: [3, 4]}, False)
    assert picks([], 3, "s") == ({}, False)


def test_one_cell_that_owns_all_trends_is_dealt_out() -> None:
    found, _ = shares([Cell(3, None, 0, 1_000_000)], 1_000_000, truncate=False)
    assert len(found) == 8
    assert {share.high - share.low for share in found} == {125_000}
    assert (found[0].low, found[-1].high) == (0, 1_000_000)
