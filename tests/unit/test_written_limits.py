"""What a user may write has limits: each message names the value, cut where it is long, the limit and the way out."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.arguments import unknown
from patternlake.udfs.errors import (
    SHOWN,
    ArgumentError,
    ConfigurationError,
    PatternError,
    PatternLakeError,
    UnsupportedOperatorError,
    shorten,
)
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.language.predicate.predicates import Scope, bind, parse_predicate
from patternlake.udfs.language.predicate.texts import read_integer
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.limits import MOST_DIGITS, MOST_LEVELS, MOST_NAMES, MOST_REPEATED

STREAM = "streams:\n  s: {source: {path: /x, format: parquet}, time: t, name: n}\n"
NINES = "9" * 5_000


def refusal(text: str) -> str:
    """What is said of a configuration."""
    with pytest.raises(ConfigurationError) as error:
        Configuration.from_text(text)
    return str(error.value)


def predicate_refusal(text: str) -> str:
    with pytest.raises(PatternError) as error:
        bind(parse_predicate(text), Scope(attributes={"x": "double", "s": "string"}, operands=("a", "b")))
    return error.value.message


def aliases(rounds: int, each: int = 9) -> str:
    """Lists of `each` aliases of the list before."""
    lines = [f"a0: &a0 [{', '.join('x' * each)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * each)}]" for n in range(1, rounds)]
    return "\n".join(lines)


class TestConfiguration:
    def test_aliases_that_multiply_are_refused_by_name_before_they_are_held(self) -> None:
        begun = time.perf_counter()
        said = refusal(aliases(12))
        # 9^12 values; a second is far more than the eight lines take.
        assert time.perf_counter() - begun < 5
        assert "line 6" in said
        assert f"aliases repeat more than {MOST_REPEATED:,} values" in said
        assert "*a4" in said
        assert "split the file" in said

    def test_merged_sections_multiply_as_well(self) -> None:
        lines = ["a0: &a0 {x: 1}"]
        lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
        assert f"more than {MOST_REPEATED:,} values" in refusal("\n".join(lines))

    def test_an_anchor_inside_itself_is_named(self) -> None:
        assert "the anchor &a stands inside itself" in refusal("a: &a [1, *a]")

    def test_aliases_that_repeat_a_little_are_read(self) -> None:
        text = (
            "streams:\n"
            "  s: &s {source: &from {path: /x, format: parquet}, time: t, name: n}\n"
            "  r: {<<: *s, key: k}\n"
            "  q: {source: *from, time: t, name: n}\n"
        )
        read = Configuration.from_text(text)
        assert [read.streams[name].source.path for name in "srq"] == ["/x"] * 3
        assert read.streams["r"].key == "k"

    @pytest.mark.parametrize(
        "text",
        [
            "a: " + "[" * 500 + "]" * 500,
            "a: " + "{a: " * 500 + "1" + "}" * 500,
            "".join(" " * n + "a:\n" for n in range(500)),
        ],
    )
    def test_nesting_has_a_limit(self, text: str) -> None:
        said = refusal(text)
        assert f"nested more than {MOST_LEVELS} deep" in said
        assert ", line " in said

    @pytest.mark.parametrize("number", [NINES, "0x" + "f" * 5_000, "1." + NINES, ":".join(["59"] * 3_000)])
    def test_a_number_has_a_limit_of_characters(self, number: str) -> None:
        said = refusal(f"{STREAM}quarantine_warning: {number}\n")
        assert f"the number {number[: SHOWN - 1]}… has {len(number):,} characters" in said
        assert f"at most {MOST_DIGITS} are possible; quote it if it is text" in said

    @pytest.mark.parametrize(
        ("written", "right"),
        [
            (f"sketches: {{s: {{memory: {NINES}MB}}}}", "at most 9223372036854775807 bytes"),
            (
                f"sketches: {{s: {{age: [{{after: {NINES} events, drop: true}}]}}}}",
                "at most 9223372036854775807 events",
            ),
            (f"sketches: {{s: {{age: [{{after: {NINES} days, drop: true}}]}}}}", "at most 1000 years"),
        ],
    )
    def test_a_number_inside_a_text_as_well(self, written: str, right: str) -> None:
        said = refusal(f"{STREAM}{written}\n")
        assert "99… is out of range" in said
        assert right in said
        assert len(said) < 600

    @pytest.mark.parametrize(
        "text",
        [
            f"database: {'x y' * 40_000}",
            STREAM.replace("parquet", "c" * 100_000),
            STREAM.replace("name: n", f"name: n, timezone: {'x' * 100_000}"),
            STREAM.replace("name: n", f"name: n, attributes: {{a: {'x' * 100_000}}}"),
            STREAM.replace("name: n", f"name: n, attributes: {{a: 'decimal({NINES},2)'}}"),
            STREAM.replace("name: n", f"name: {'x +' * 30_000}"),
            STREAM.replace("name: n", f"name: n, allowed_lateness: {'x' * 100_000}"),
            f"{STREAM}sketches: {{s: {{memory: {'x ' * 50_000}}}}}",
            f"{STREAM}sketches: {{s: {{structure: {'x' * 100_000}}}}}",
            f"{STREAM}trends: {{q: {{stream: {'s' * 100_000}, query: A}}}}",
            f"? {'k' * 100_000}\n: 1\n",
            f"{STREAM}sketches:\n  ? {'k' * 100_000}\n  : {{}}\n",
            f"a: !{'x' * 100_000} b",
            f"a: *{'x' * 100_000}",
        ],
    )  # fmt: skip
    def test_a_message_does_not_repeat_a_long_value(self, text: str) -> None:
        assert max(map(len, refusal(text).splitlines())) < 1_000


class TestPatterns:
    @pytest.mark.parametrize(
        "text",
        [f"A[{NINES}]", f"A{{2,{NINES}}}", f"A ; B WITHIN {NINES} EVENTS", f"A ; B WITHIN 9 EVENTS SLIDE {NINES} SEC"],
    )
    def test_a_count_of_thousands_of_digits_is_refused_at_its_place(self, text: str) -> None:
        with pytest.raises(PatternError, match="line 1, column") as error:
            parse(text)
        assert len(str(error.value)) < 400

    @pytest.mark.parametrize("number", [NINES, f"-{NINES}", f"1e{NINES}", f"{NINES}.5"])
    def test_a_number_of_a_predicate_fits_a_double_or_is_refused(self, number: str) -> None:
        said = predicate_refusal(f"a.x > {number}")
        assert "… is out of the range of DOUBLE, which ends at 1.8e308" in said
        assert len(said) < 200

    def test_zeros_in_front_make_no_number_long(self) -> None:
        bind(parse_predicate(f"a.x > {'0' * 5_000}17"), Scope(attributes={"x": "double"}, operands=("a",)))

    @pytest.mark.parametrize(
        "text", [f"CAST(a.x AS decimal({NINES},2)) > 1", f"t({NINES}) > t(1)", f"t{NINES} > 1", f"b[{NINES}].x > 1"]
    )
    def test_numbers_of_types_and_operands_as_well(self, text: str) -> None:
        assert len(predicate_refusal(text)) < 600

    @pytest.mark.parametrize(
        "text", ["a.x > " + "z" * 100_000, "a." + "z" * 100_000 + " > 1", "f" * 100_000 + "(a.x) > 1"]
    )
    def test_a_message_does_not_repeat_a_long_name(self, text: str) -> None:
        assert len(predicate_refusal(text)) < 600

    def test_the_caret_stands_below_its_place_in_a_cut_line(self) -> None:
        with pytest.raises(PatternError) as error:
            parse("A" * 90 + " ; B C")
        _, line, caret = str(error.value).split("\n")
        assert line[caret.index("^")] == "C"

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            (NINES, None),
            ("0" * 5_000 + "17", 17),
            ("-" + "0" * 30 + "5", -5),
            ("-.5", 0),
            ("9223372036854775808", None),
        ],
    )
    def test_a_long_integer_of_an_event_is_null_not_an_error(self, text: str, value: int | None) -> None:
        assert read_integer(text) == value

    def test_groups_take_a_thousand_names(self) -> None:
        compile_query(parse("|".join(f"A{n}" for n in range(MOST_NAMES))), within=2)
        with pytest.raises(UnsupportedOperatorError) as error:
            compile_query(parse("|".join(f"A{n}" for n in range(20_000))), within=2)
        assert "the pattern has 20,000 different names; at most 1,000 are possible" in error.value.message
        assert "DEFINE" in error.value.message


@pytest.mark.parametrize(
    ("value", "shown"),
    [("30 dayz", "'30 dayz'"), (None, "None"), ("x" * 78, f"'{'x' * 78}'"), ("x" * 79, f"'{'x' * 78}…"), ([1], "[1]")],
)
def test_a_value_is_shown_as_written_and_cut_where_it_is_long(value: object, shown: str) -> None:
    assert shorten(value) == shown


@pytest.mark.parametrize("error", [PatternLakeError, ArgumentError, ConfigurationError])
def test_no_error_shows_a_word_of_more_than_eighty_characters(error: Callable[[str], Exception]) -> None:
    assert str(error(f"no stream {'x' * 100_000}; streams: a")) == f"no stream {'x' * 79}…; streams: a"


def test_a_stream_that_is_not_there_is_not_repeated_whole() -> None:
    said = str(unknown("stream", "x y" * 50_000, "streams", ["clicks"], "run `ingest`"))
    assert said.startswith("there is no stream 'x yx y")
    assert said.endswith("…; streams: 'clicks'")
