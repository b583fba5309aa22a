"""docs/scale.md says what benchmarks.scale works out, and what that gives for the sizes that were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import scale
from benchmarks.scale_arithmetic import HUNDRED, MILLION, Load, lines
from benchmarks.scale_constants import CONSTANTS, Constant, read_measured

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").splitlines()
SHEETS = list(scale.sheets(scale.SIZES, None, scale.MANY_CORES))


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_the_page_has_the_table_that_the_program_prints(sheet: scale.Sheet) -> None:
    assert f"{sheet.markdown}\n" in f"{PAGE}\n"


def test_the_page_has_no_other_tables_of_the_program() -> None:
    assert re.findall(r"<!-- (\w+) -->", PAGE) == [sheet.name for sheet in SHEETS]


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda constant: constant.name)
def test_a_constant_stands_in_the_line_that_it_names(constant: Constant) -> None:
    found = [line for line in MEASURED if constant.where in line]
    assert len(found) == 1, f"{constant.where!r} is a piece of {len(found)} lines of docs/performance.md, not of one"
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", found[0])]
    assert constant.value in numbers


def test_files_of_the_lake_that_was_counted_come_out_exactly() -> None:
    # Ten batches of 10 million: 763 blocks, 20 ranges in each batch, and 9 batches that end within a block.
    assert Load(HUNDRED, 10).event_files == 763 + 10 * 19 + 9 == 962
    # One batch of the sketch: a file for each of 977 parts, and 66 of tops.
    assert Load(HUNDRED, 1).sketch_files == 977 + 66 == 1043


def test_small_batches_leave_no_more_files_than_maintenance_lets_stand() -> None:
    # 100 batches of 10,000 events, 8 blocks: less than eight small files in each.
    assert Load(MILLION, 100).event_files == 8 * 7


@pytest.mark.parametrize(
    ("name", "batches", "told"),
    [
        ("ingest", 1, {MILLION: 6.5, 10 * MILLION: 13.0}),
        ("sketch", 1, {MILLION: 6.3, 10 * MILLION: 7.7}),
        ("trends", 1, {MILLION: 1.8, 10 * MILLION: 14.8}),
        ("groups", 1, {MILLION: 1.0, 10 * MILLION: 15.3}),
        ("predict", 1, {MILLION: 3.8}),
    ],
)
def test_the_times_that_lines_were_drawn_through_come_out(name: str, batches: int, told: dict[int, float]) -> None:
    for events, seconds in told.items():
        assert Load(events, batches).time(name).total == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(("name", "batches", "seconds"), [("ingest", 10, 98.3), ("sketch", 1, 21.1)])
def test_a_hundred_million_events_come_out_within_six_per_cent(name: str, batches: int, seconds: float) -> None:
    assert Load(HUNDRED, batches).time(name).total == pytest.approx(seconds, rel=0.06)


def test_bytes_read_for_rare_names_come_out_within_a_tenth() -> None:
    assert Load(HUNDRED, 1).rare_bytes == pytest.approx(read_measured("read for match_seq, rare"), rel=0.1)
    assert Load(10 * MILLION, 1).rare_bytes == pytest.approx(22_867_421, rel=0.1)


def test_bytes_read_for_a_key_come_out_within_a_hundredth() -> None:
    # Filters of all tops, and the bodies of 233 of 977 parts, of 1,498,175,331 bytes in all.
    assert Load(HUNDRED, 1).key_bytes == pytest.approx(111_338_881 + 233 / 977 * 1_498_175_331, rel=1e-6)


def test_the_list_of_source_files_comes_out_within_a_hundredth() -> None:
    # Ten batches of two files each: one list of 20.
    assert Load(HUNDRED, 10).source_list == pytest.approx(3_562, rel=0.01)


def test_work_goes_by_the_cores_as_far_as_a_batch_has_tasks() -> None:
    _, each = lines()["ingest"]
    # A batch of 10 million events is cut into 20 ranges, and on more cores into as many as these, up to 256.
    assert Load(10 * MILLION, 1, 16).time("ingest").work == pytest.approx(10 * MILLION * each / 8)
    assert Load(10 * MILLION, 1, 1_000).time("ingest").work == pytest.approx(10 * MILLION * each / 128)


def test_what_looks_at_all_earlier_files_grows_with_their_square() -> None:
    small, large = Load(1_000 * MILLION, 100), Load(10_000 * MILLION, 1_000)
    assert large.looks / small.looks == pytest.approx(100, rel=0.01)
    assert large.read_again / small.read_again == pytest.approx(100, rel=0.02)


def test_the_program_prints_the_tables_of_the_page() -> None:
    app = typer.Typer()
    app.command()(scale.main)
    printed = CliRunner().invoke(app, ["--markdown"])
    assert printed.output == "\n".join(sheet.markdown for sheet in SHEETS)
    other = CliRunner().invoke(app, ["--markdown", "--events", "1000000000", "--batches", "10", "--cores", "64"])
    assert "| batches | 10 |" in other.output
    refused = CliRunner().invoke(app, ["--events", "1000"])
    assert refused.exit_code == 2
    assert "1,000: at least 10,000,000" in refused.output


def test_writing_replaces_the_tables_and_nothing_else() -> None:
    sheet = scale.Sheet("disk", ("", "1 G events"), (("batches", "100"),))
    page = "before\n\n<!-- disk -->\n| old |\n|---|\n| 1 |\n\nafter\n"
    assert scale.write_page(page, [sheet]) == (
        "before\n\n<!-- disk -->\n|  | 1 G events |\n|---|---|\n| batches | 100 |\n\nafter\n"
    )
    with pytest.raises(ValueError, match="no table <!-- disk -->"):
        scale.write_page("nothing", [sheet])


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (scale.shown_seconds(0.44), "0.44 s"),
        (scale.shown_seconds(5_400), "1.5 h"),
        (scale.shown_seconds(864_000), "10 days"),
        (scale.shown_bytes(1_111_525_003), "1.1 GB"),
        (scale.shown_bytes(604_000_000), "604 MB"),
        (scale.shown_count(100_000 * MILLION), "100 G"),
    ],
)
def test_figures_have_two_digits_and_the_unit_that_fits(shown: str, told: str) -> None:
    assert shown == told
