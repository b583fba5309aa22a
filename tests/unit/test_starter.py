"""What a first configuration takes columns for, given what was found in them. Nothing here starts Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from pyspark.sql import SparkSession

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.starter import found_source
from patternlake.jobs.starter.column_facts import ColumnFacts
from patternlake.jobs.starter.found_source import FoundSource, _csv
from patternlake.jobs.starter.guesses import Guesses, guess
from patternlake.jobs.starter.text import NO_TIME, Starter, as_yaml, commands, report
from patternlake.udfs.errors import SourceError

NO_SESSION = cast(SparkSession, None)
ROWS = 1000


def column(name: str, type: str = "string", distinct: int = 20, nulls: int = 0, **found: Any) -> ColumnFacts:
    """A column of which all values read as what `found` says, if it says no other number."""
    rows = found.pop("rows", ROWS)
    words, stray = found.pop("words", {}), found.pop("stray", None)
    reads = {kind.replace("_", " "): rows - nulls if count is True else count for kind, count in found.items()}
    plain = name.replace("_", "").isalnum() and "." not in name
    return ColumnFacts(
        name, name if plain else f"`{name}`", type, rows, nulls, distinct, None, None, reads, words, stray
    )


def reads_as(name: str, kind: str, count: int = ROWS) -> ColumnFacts:
    return ColumnFacts(name, name, "string", ROWS, 0, 900, None, None, {kind: count})


def roles(found: Guesses) -> tuple[str | None, ...]:
    return tuple(each[0].expression if each else None for each in (found.times, found.names, found.keys))


def test_time_name_and_key_are_told_by_type_repetition_and_words() -> None:
    found = guess(
        [
            column("id", "bigint", distinct=ROWS),
            column("created_at", "timestamp", distinct=990),
            column("user_id", "bigint", distinct=120),
            column("event_type", distinct=7),
            column("country", distinct=30),
            column("amount", "double", distinct=800),
        ]
    )
    assert roles(found) == ("created_at", "event_type", "user_id")
    assert [candidate.expression for candidate in found.ids] == ["id"]
    assert [(each.name, each.type) for each in found.attributes] == [
        ("id", "bigint"),
        ("country", "string"),
        ("amount", "double"),
    ]


def test_other_candidates_follow_the_likeliest() -> None:
    found = guess([column("at", "timestamp"), column("seen", "date"), column("page"), column("kind"), column("who")])
    assert [each.expression for each in found.times] == ["at", "seen"]
    assert [each.expression for each in found.names] == ["kind", "page", "who"]
    assert [each.expression for each in found.keys] == ["who"]


def test_what_says_where_something_happened_is_no_name_where_another_text_repeats() -> None:
    columns = [column("at", "timestamp"), column("client", distinct=90), column("channel"), column("stage")]
    found = guess([*columns, column("country")])
    assert roles(found) == ("at", "stage", "client")
    assert [each.expression for each in found.names] == ["stage", "channel", "country", "client"]
    assert roles(guess(columns[:3])) == ("at", "channel", "client")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("land", "Zeitpunkt", "Ereignis", "Kundennummer"), ("Zeitpunkt", "Ereignis", "Kundennummer")),
        (("kanal", "datum", "aktion", "benutzer_id"), ("datum", "aktion", "benutzer_id")),
        (("status", "zeit", "vorgang", "vorgangsnr"), ("zeit", "vorgang", "vorgangsnr")),
        (("Währung", "zeitstempel", "Aktivität", "kunde"), ("zeitstempel", "`Aktivität`", "kunde")),
        (("gruppe", "erstellt", "meldung", "GeräteNr"), ("erstellt", "meldung", "`GeräteNr`")),
        (("ville", "horodatage", "événement", "utilisateur"), ("horodatage", "`événement`", "utilisateur")),
        (("pays", "heure", "type_action", "numero_client"), ("heure", "type_action", "numero_client")),
        (("ciudad", "fecha", "evento", "usuario"), ("fecha", "evento", "usuario")),
        (("canal", "hora", "acción", "id_sesión"), ("hora", "`acción`", "`id_sesión`")),
    ],
)
def test_words_of_other_languages_say_what_columns_are(
    names: tuple[str, str, str, str], expected: tuple[str, str, str]
) -> None:
    other, time, what, who = names
    columns = [
        column(other, distinct=9),
        column("menge", "bigint", distinct=500),
        # A number, which is a time by its name alone.
        column(time, "bigint", seconds=True),
        column(who, distinct=90),
        column(what, distinct=7),
    ]
    for given in (columns, columns[::-1]):
        found = guess([each if each.name.isascii() else replace(each, expression=f"`{each.name}`") for each in given])
        wanted = (f"timestamp_seconds({expected[0]})", *expected[1:])
        assert roles(found) == wanted


@pytest.mark.parametrize(
    ("kind", "expression"),
    [
        ("moment", "at"),
        ("dd.MM.yyyy HH:mm", "to_timestamp(at, 'dd.MM.yyyy HH:mm')"),
        ("yyyyMMddHHmmss", "to_timestamp(at, 'yyyyMMddHHmmss')"),
        ("day", "at"),
    ],
)
def test_texts_of_times_are_read_by_what_they_look_like(kind: str, expression: str) -> None:
    assert roles(guess([reads_as("at", kind)]))[0] == expression


@pytest.mark.parametrize(
    ("unit", "expression"),
    [
        ("seconds", "timestamp_seconds(ts)"),
        ("milliseconds", "timestamp_millis(ts)"),
        ("microseconds", "timestamp_micros(ts)"),
    ],
)
def test_numbers_are_times_where_the_column_is_called_so(unit: str, expression: str) -> None:
    assert roles(guess([column("ts", "bigint", **{unit: True})]))[0] == expression
    assert roles(guess([column("amount", "bigint", **{unit: True})]))[0] is None


def test_a_text_of_a_number_is_cast_before_it_is_a_time() -> None:
    found = guess([column("epoch", whole=True, seconds=True)])
    assert roles(found)[0] == "timestamp_seconds(CAST(epoch AS BIGINT))"


@pytest.mark.parametrize(
    "names",
    [
        ("year", "month", "day", "hour", "minute"),
        ("Jahr", "Monat", "Tag", "Stunde", "Minute"),
        ("année", "mois", "jour", "heure", "minute"),
        ("año", "mes", "día", "hora", "minuto"),
    ],
)
def test_the_parts_of_a_time_are_put_together(names: tuple[str, ...]) -> None:
    parts = [column(name, whole=True) for name in names]
    found = guess([*parts, column("what")])
    assert roles(found)[0] == f"make_timestamp({', '.join(names)}, 0)"
    assert [each.name for each in found.attributes] == []


def test_a_day_and_a_time_of_day_are_put_together() -> None:
    found = guess([column("on", day=True), column("hours", clock=True), column("what")])
    assert roles(found)[0] == "concat(on, ' ', hours)"


def test_some_texts_that_are_no_times_are_told() -> None:
    found = guess([reads_as("at", "moment", ROWS - 3)])
    assert "but for 3 of them, whose rows go to quarantine" in found.times[0].why
    assert guess([reads_as("at", "moment", ROWS // 2)]).times == ()


def test_of_two_ways_to_read_texts_the_one_that_reads_more_is_taken() -> None:
    iso = "yyyy-MM-dd'T'HH:mm[:ss][.SSSSSS][ ][XXX][XX][z]"
    some_without_seconds = ColumnFacts("at", "at", "string", ROWS, 0, 900, None, None, {"moment": ROWS - 9, iso: ROWS})
    found = guess([some_without_seconds]).times[0]
    assert found.expression == r"to_timestamp(at, 'yyyy-MM-dd\'T\'HH:mm[:ss][.SSSSSS][ ][XXX][XX][z]')"
    assert "quarantine" not in found.why
    nanoseconds = ColumnFacts("at", "at", "string", ROWS, 0, 900, None, None, {"moment": ROWS, iso: ROWS - 9})
    assert guess([nanoseconds]).times[0].expression == "at"


def test_two_readings_of_a_day_and_a_month_are_told() -> None:
    both = ColumnFacts("at", "at", "string", ROWS, 0, 900, None, None, {"dd/MM/yyyy": ROWS, "M/d/yyyy": ROWS})
    assert "may be M/d/yyyy as well" in guess([both]).times[0].why


def test_the_reading_that_fits_most_days_and_months_is_taken() -> None:
    day, month = "dd/MM/yyyy HH:mm:ss", "M/d/yyyy H:mm:ss"
    counts = {day: 12 * ROWS // 13, month: ROWS}
    (found,) = guess([ColumnFacts("at", "at", "string", ROWS, 0, 900, None, None, counts)]).times
    assert found.expression == f"to_timestamp(at, '{month}')"
    assert f"may be {day} as well" in found.why
    with_zones = {day: 12 * ROWS // 13, day + "[.SSSSSS][ ][XXX][XX][z]": ROWS}
    (found,) = guess([ColumnFacts("at", "at", "string", ROWS, 0, 900, None, None, with_zones)]).times
    assert found.expression == f"to_timestamp(at, '{day}[.SSSSSS][ ][XXX][XX][z]')"


def test_a_day_goes_with_the_time_of_day_that_is_called_like_it() -> None:
    visits = [column("birth_date", day=True), column("visit_date", day=True), column("visit_time", clock=True)]
    assert guess(visits).times[0].expression == "concat(visit_date, ' ', visit_time)"
    orders = [column("order_time", moment=True), column("delivery_date", day=True), column("delivery_slot", clock=True)]
    assert guess(orders).times[0].expression == "order_time"


def test_a_word_that_is_a_name_stands_for_nothing_missing() -> None:
    columns = [
        column("at", "timestamp"),
        column("status", distinct=3, words={"None": 400}),
        column("amount", number=ROWS - 9, words={"None": 9}),
        column("ticket", distinct=90),
    ]
    found = guess(columns, options=True)
    assert (roles(found)[1], found.missing) == ("status", None)
    assert [each.expression for each in found.attributes] == ["nullif(amount, 'None')"]
    assert guess([*columns[:1], column("status", distinct=3), *columns[2:]], options=True).missing == "None"


def test_texts_become_the_type_that_all_of_them_have() -> None:
    found = guess(
        [
            column("at", "timestamp"),
            column("what"),
            column("n", whole=True, number=True),
            column("x", number=True),
            column("zip", number=True, padded=3),
            column("ok", truth=True),
            column("mixed", whole=ROWS - 11, number=ROWS - 11),
        ]
    )
    types = {each.name: each.type for each in found.attributes}
    assert types == {"n": "bigint", "x": "double", "zip": "string", "ok": "boolean", "mixed": "string"}


def test_numbers_with_a_few_other_texts_are_numbers_that_say_what_becomes_of_those() -> None:
    found = guess(
        [
            column("what"),
            column("price", number=ROWS - 5, whole=30, words={"n/a": 2}, stray="free"),
            column("seats", number=ROWS - 1, whole=ROWS - 1, stray="two"),
            column("delay", number=ROWS - 600, whole=ROWS - 600, words={"NA": 500, "-": 100}),
            column("product_code", number=ROWS - 1, whole=ROWS - 1, stray="X7"),
        ]
    )
    assert [(each.name, each.type, each.expression) for each in found.attributes] == [
        ("price", "double", "try_cast(price AS DOUBLE)"),
        ("seats", "bigint", "try_cast(seats AS BIGINT)"),
        ("delay", "bigint", "try_cast(delay AS BIGINT)"),
        ("product_code", "string", None),
    ]
    assert [each.why.partition("; ")[2] for each in found.attributes] == [
        "5 that are no numbers, such as 'free', become NULL",
        "1 that are no numbers, such as 'two', become NULL",
        "600 that are no numbers, such as 'NA', '-', become NULL",
        "",
    ]


def test_numbers_with_a_decimal_comma_are_numbers() -> None:
    found = guess(
        [
            column("what"),
            column("betrag", comma=True, cents=1, number=30, whole=30),
            column("preis", comma=ROWS - 5, cents=900, words={"NA": 5}),
            column("thousands", comma=True, number=30, whole=30),
            column("menge", comma=True, number=True, whole=True),
            column("plz", comma=True, number=30, padded=3),
        ]
    )
    comma = "CAST(replace(replace({}, '.', ''), ',', '.') AS DOUBLE)"
    assert [(each.name, each.type, each.expression) for each in found.attributes] == [
        ("betrag", "double", comma.format("betrag")),
        ("preis", "double", comma.format("nullif(preis, 'NA')")),
        ("thousands", "string", None),
        ("menge", "bigint", None),
        ("plz", "string", None),
    ]
    assert found.attributes[0].why.endswith("; numbers with a decimal comma")


def test_a_step_and_a_probability_are_told_by_their_names_and_values() -> None:
    steps, share = column("step", "int"), column("prob", "double", share=True)
    found = guess([column("at", "timestamp"), column("letter"), column("who"), steps, share])
    assert [each[0].expression for each in (found.steps, found.probabilities)] == ["step", "prob"]
    assert found.attributes == ()
    written = as_yaml(starter(AT, WHAT, WHO, steps, share))
    stream = Configuration.from_text(written).streams["clicks"]
    assert (stream.step, stream.probability) == ("step", "prob")
    # One without the other says nothing, nor does a number above 1.
    for columns in ([steps], [share], [steps, column("prob", "double", share=ROWS - 1)]):
        found = guess([AT, WHAT, WHO, *columns])
        assert (found.steps, found.probabilities) == ((), ())


def test_one_text_for_what_is_missing_is_an_option_of_csv_and_an_expression_elsewhere() -> None:
    columns = [column("what"), column("x", number=ROWS - 5, words={"NA": 5})]
    csv, other = guess(columns, options=True), guess(columns)
    assert csv.missing == "NA"
    assert [(each.type, each.expression) for each in csv.attributes] == [("double", None)]
    assert other.missing is None
    assert [(each.type, each.expression) for each in other.attributes] == [("double", "nullif(x, 'NA')")]


def test_what_no_attribute_can_be_is_left_out_with_why() -> None:
    found = guess([column("what"), column("tags", "array<string>"), column("void", nulls=ROWS, distinct=0)])
    assert found.left_out == (
        ("tags", "is array<string>; an attribute is a single value"),
        ("void", "has no value in any of these rows"),
    )


def test_attributes_have_names_that_patterns_can_write() -> None:
    found = guess([column("what"), column("position", "int"), column("org:unit", "int"), column("org.unit", "int")])
    assert [(each.name, each.expression) for each in found.attributes] == [
        ("position_", "position"),
        ("org_unit", "`org:unit`"),
        ("org_unit_", "`org.unit`"),
    ]


def test_of_an_event_log_the_activity_is_the_name_and_the_case_the_key() -> None:
    log = [
        column("case:concept:name", distinct=80),
        column("concept:name", distinct=9),
        column("time:timestamp", moment=True),
        column("org:resource", distinct=12),
    ]
    assert roles(guess(log)) == ("`time:timestamp`", "`concept:name`", "`case:concept:name`")


def starter(*columns: ColumnFacts, names: tuple[tuple[str, int], ...] = (), **section: Any) -> Starter:
    section = section or {"table": "raw.clicks"}
    source = FoundSource("clicks", section, section.pop("schema", None))
    return Starter(source, guess(columns, options=True), names, "all 1,000 rows of table raw.clicks", Path("c.yaml"))


AT, WHAT, WHO = column("at", "timestamp"), column("what", distinct=3), column("who", distinct=40)


def test_the_text_is_a_configuration_that_says_why() -> None:
    written = as_yaml(starter(AT, WHAT, WHO, column("x", "double"), names=(("pay", 600), ("cart", 400))))
    stream = Configuration.from_text(written).streams["clicks"]
    assert (stream.source.table, stream.time, stream.name, stream.key) == ("raw.clicks", "at", "what", "who")
    assert stream.types == {"x": "double"}
    assert yaml.safe_load(written)["sketches"] == {"clicks": {"keyed": True}}
    assert "guessed from all 1,000 rows of table raw.clicks" in written
    assert "the commonest: pay (600), cart (400)" in written
    assert "# timestamp, 20 different" in written


def test_odd_names_and_texts_stay_inside_of_the_yaml() -> None:
    odd = column("a: b # c", distinct=3)
    names = (('it\'s # "so"\nor so', 3), ("b", 2))
    written = as_yaml(starter(AT, odd, column("- x", "int"), names=names, schema="c1 STRING, c2 STRING",
                              format="csv", path="/data/{a,b}/*.csv"))  # fmt: skip
    stream = Configuration.from_text(written).streams["clicks"]
    assert stream.name == "`a: b # c`"
    assert stream.expression("x") == "`- x`"


def test_names_with_letters_that_yaml_takes_nowhere_are_shown_as_escapes() -> None:
    names = (("It\x80s", 4), ("a\x1b", 3), (r"C:\new", 2), ("b", 1))
    made = starter(AT, column("what", distinct=4), names=names)
    written = as_yaml(made)
    Configuration.from_text(written)
    assert r"It\x80s (4), a\x1b (3)" in written
    assert made.question is not None
    assert "'" * 3 + r"C:\\new'' ; b" in made.question


def test_a_source_in_which_nothing_is_recognised_still_gives_a_configuration() -> None:
    written = as_yaml(starter(column("x", "double"), column("y", "double")))
    stream = Configuration.from_text(written).streams["clicks"]
    assert (stream.time, stream.name, stream.key) == ("CAST(NULL AS TIMESTAMP)", "'event'", None)
    assert "no column looks like a time: write its expression" in written


def test_what_is_told_ends_with_what_to_run() -> None:
    found = starter(AT, WHAT, WHO, names=(("pay", 600), ("Not Paid", 400)))
    lines = report(found)
    assert lines[0] == "looked at all 1,000 rows of table raw.clicks, and guessed:"
    assert lines[3] == "  key: who (string, 40 different)"
    assert commands(found) == [
        "patternlake check --conf c.yaml",
        "patternlake run all --conf c.yaml",
        'patternlake sql --conf c.yaml "\n'
        "  SELECT key, first_time, last_time\n"
        "  FROM match_seq('clicks', 'pay ; ''Not Paid'' PARTITION BY key WITHIN 1 DAY')\n"
        '  LIMIT 10"',
    ]


def test_no_line_is_wider_than_a_page() -> None:
    long = "what_the_column_of_a_warehouse_is_called_" * 2
    strays = column(long, number=ROWS - 5, words={"n/a": 2, "unknown": 3})
    parts = [replace(column(name, whole=True), expression=f"`{long}`.{name}") for name in ("year", "month", "day")]
    schema = ", ".join(f"c{number} STRING" for number in range(1, 30))
    for found in (
        starter(
            AT,
            WHAT,
            WHO,
            strays,
            names=tuple((f"{long} {n}", n) for n in range(9, 0, -1)),
            format="csv",
            path="/data/*.csv",
            options={"header": True},
        ),
        starter(column("seen", "date"), AT, WHAT, column("id", "bigint", distinct=ROWS), column(long, "array<string>")),
        starter(*parts, WHAT, schema=schema, format="csv", path=f"/data/{long}/*.csv", options={"header": True}),
        starter(column("x", "double")),
    ):
        written, told = as_yaml(found), report(found)
        stream = Configuration.from_text(written).streams["clicks"]
        # A line with a word that is wider alone may be.
        assert [line for line in (*written.splitlines(), *told) if len(line) > 88 and long not in line] == []
        assert stream.time == (found.guesses.times[0].expression if found.guesses.times else NO_TIME)
        assert stream.ddl == found.source.schema
        for each in found.guesses.attributes:
            assert each.expression is None or stream.expression(each.name) == each.expression


def test_names_that_a_shell_would_read_are_put_into_no_command() -> None:
    assert len(commands(starter(AT, WHAT, names=(("$HOME", 2), ("b", 1))))) == 2


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("at,user\n2024-01-01,ann\n", True),
        # As pandas and R write the number of a row, with a comma at the end of each line, with a name twice.
        (",at,user\n0,2024-01-01,ann\n", True),
        ('"","at","user"\n"1","2024-01-01","ann"\n', True),
        ("at,user,\n2024-01-01,ann,\n", True),
        ("at,User,user\n2024-01-01,ann,ben\n", True),
        ("2024-01-01,ann,\n2024-01-02,ben,\n", False),
        ("ann,,1.5\nben,,2\n", False),
        ("a,b,a\nb,a,a\n", False),
        ("at,user\r2024-01-01,ann\r", True),
        ("at,payload\n2024-01-01," + "x" * 200_000, True),
    ],
)
def test_a_header_is_told_from_rows(text: str, header: bool) -> None:
    options, schema = _csv(text, "a.csv")
    assert (options, schema is None) == ({"header": True} if header else {}, header)


@pytest.mark.parametrize(
    ("row", "slashed"),
    [
        (r'2024-01-01,"say \"hi\", ann"', True),
        (r'2024-01-01,"{\"a\":1}"', True),
        (r'"\"hi\" said",ann', True),
        ('2024-01-01,"say ""hi"""', False),
        (r'2024-01-01,"{""a"": ""\""}"', False),
        (r'"C:\","D:\"', False),
        (r"2024-01-01,5\" disk", False),
    ],
)
def test_backslashes_before_quotes_are_told_from_doubled_quotes(row: str, slashed: bool) -> None:
    for end in ("\n", "\r\n"):
        options, _ = _csv(f"at,what{end}{row}{end}", "a.csv")
        assert options == {"header": True, **({"escape": "\\"} if slashed else {})}


def test_logs_in_a_store_are_refused_before_one_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_source, "_files", lambda *_: [("s3a://bucket/logs/a.xes", 5)])
    with pytest.raises(SourceError, match=r"--files 's3a://bucket/logs/\*.xes': XES files are not read from an object"):
        found_source.file_source(NO_SESSION, "s3a://bucket/logs/*.xes")
