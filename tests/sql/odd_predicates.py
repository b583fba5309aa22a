"""Rows of odd values, and random predicates over them: as PatternLake reads them, and as Spark does.

A predicate is a pair of texts. They differ only where docs/language.md, "As in Spark, but", says that ours means
something else: Spark's text writes that out. So what the page says is what this file says.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any, NamedTuple

NAN, INF = float("nan"), float("inf")
SECOND = 1_000_000
DAY = 86_400 * SECOND
MOST = 2**63 - 1

SCHEMA = {
    "x": "double", "y": "double", "r": "float", "c": "decimal(12,3)", "n": "bigint", "m": "bigint", "i": "int",
    "h": "smallint", "b": "tinyint", "s": "string", "u": "string", "f": "boolean", "ts": "timestamp", "d": "date",
}  # fmt: skip

TEXTS = [
    "", " ", "a", "a\0", "a\0b", "\0", "ab", "A", "a%b", "a_b", "ß", "SS", "ΑΣ", "İ", "ﬁ", "😀a", "e\u0301", "a\nb",
    "1", "+1", "-0", "-1", "1.", ".5", ".", "+", "-", "12.9", "-12.9", "007", "1e3", "1E-2", "1d", "1F", "1L", "0x1F",
    "0x1p3", "0X.8P1", "NaN", "nan", "-nan", "+NaN", "-NaN", "inf", "+INF", "-Infinity", " infinity ", "Infinityd",
    "1_000", "1,5", "１２", "٣", "--1", "1 2",
    "\u00a01", "1\u2003", "\u30001\u3000", "\t1\n", "\x1c1", "1\x1f", "\x7f1", "\x851", "1\0", "\x001", "\ufeff1",
    "127", "128", "-129", "300", "32767", "32768", "2147483647", "2147483648", "-2147483649", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e400", "-1e400", "1e-400",
    "99999999999999999999.99", "0.1", "2.675", "1.005", "-2.5", "2.5", "9999999.995", "1e38", "1e39", "123456.7890125",
    "true", " TRUE ", "t", "yes", "Y", "on", "off", "no", "\u00a0true", "true\u2003", "f\0", "0", "00",
    "2013-01-01", " 2013-01-01 ", "\u00a02013-01-01", "2013-01-01\u2003", "2013-1-1", "2013-001-1", "2013", "2013-01",
    "2013-", "2013-01-", "213-01-01", "+2013-01-01", "-2013-01-01", "-0044-03-15", "0000-01-01", "0001-01-01",
    "9999-12-31", "10000-01-01", "+10000-01-01", "12345", "99999-06-15 12:30:00", "294247-01-10 04:00:54.775807",
    "294247-01-10 04:00:54.775808", "2013-02-29", "2012-02-29",
    "1900-02-29", "2000-02-29", "2013-13-01", "2013-01-32", "2013-00-01", "2013-01-01T", "2013-01-01T10",
    "2013-01-01 10", "2013-01-01 10:30", "2013-01-01 10:30:", "2013-01-01 1:2:3", "2013-01-01  10:30:00",
    "2013-01-01T10:30:00Z", "2013-01-01T10:30:00z", "2013-01-01 10:30:00 Z", "2013-01-01T10:30:00+01:00",
    "2013-01-01T10:30:00-0130", "2013-01-01T10:30:00+1", "2013-01-01T10:30:00+01", "2013-01-01T10:30:00+1:5",
    "2013-01-01T10:30:00+18:00", "2013-01-01T10:30:00+18:01", "2013-01-01T10:30:00+19:00",
    "2013-01-01T10:30:00+01:00:30", "2013-01-01T10:30:00.5 UTC", "2013-01-01T10:30:00UTC+01:00",
    "2013-01-01T10:30:00GMT-2", "2013-01-01T10:30:00UT+03:00", "2013-07-01T10:30:00 Europe/Berlin",
    "2013-01-01T10:30:00Europe/Berlin", "2013-01-01T10:30:00 europe/berlin", "1890-01-01T10:30:00 Europe/Berlin",
    "12345-07-01T10:30:00 Europe/Berlin", "-0044-03-15T10:30:00 Europe/Berlin", "2013-01-01T10:30:00 CET",
    "2013-01-01T10:30:00 PST", "2013-01-01T10:30:00 EST", "2013-01-01T10:30:00 Nowhere/City",
    "2013-01-01 24:00:00", "2013-01-01 23:59:60", "2013-01-01 23:60:00", "2013-01-01 10:30:00.1",
    "2013-01-01 10:30:00.1234567", "2013-01-01 10:30:00.123456789", "2013-01-01 10:30:00.1234567890",
    "2013-01-01 10:30:00.", "2013-01-01 10:30:00,5", "2013-01-01 foo", "20130101", "1969-12-31 23:59:59.999999",
    "2013-01-01 10:30 +01:00", "2013-01-01 10+01:00", "2013-01-01+01:00", "2013-01-01Z", "epoch", "now", "today",
]  # fmt: skip
"""Texts that are read, or nearly read, as something else; no time without a date, as Spark takes today's for it."""
MORE_TEXTS = [
    "-290308-12-22", "2013-01-01 1030", "2013-01-01T103000", "+.",
    ".x", "1.x", " + 1", "0x1p3d", "0x1.", "0x.p1", "-0x1p-2", "0x1p5000", "-0x1p5000", "1e", "1.e1", "\x011", "NaNd",
    "+nan", "-inf", "-Infinityd", "1e-999999999999", "1e-99999", "0e99999", "1" * 5000, "0" * 5000, "0." + "9" * 50,
    "2013-01-01T10:30:00 BST", "2013-01-01T10:30:00 IST", "2013-01-01T10:30:00UTC+1:00", "2013-01-01T10:30:00+010030",
    "2013-01-01T10:30:00+01:60", "2013-01-01T10:30:00+01:5", "2013-01-01T10:30:00UT", "2013-01-01T10:30:00 GMT0",
    "2013-01-01T10:30:00+1:5:3", "2013-01-01T10:30:00+1:05:03", "2013-01-01T10:30:00 + 1", "2013-01-01T10:30:00.5.6",
    "2013-03-31T02:30:00 Europe/Berlin", "2013-10-27T02:30:00 Europe/Berlin", "2013-01-01T10:30:00  EST5EDT",
    "2013-01-01T10:30:00 posix/Europe/Berlin", "2013-01-01 10:", "2013-01-01 10:30+01:00", "+-2013-01-01",
]  # fmt: skip
"""Texts for casts alone."""
NO_DATES = ["-290308-12-21 19:59:05.224192", "999999-01-01", "1000000-01-01"]
"""Texts that are dates in Spark only: microseconds in 64 bits do not reach them."""

DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 2.675, 1.005, 1e-3, 9.99e-4, 1e7, 9999999.0, 1e10, -1e10,
    127.0, 128.9, -129.0, 300.0, 32768.0, 2147483647.0, 2147483648.5, -2147483649.0, 4294967296.0, 9007199254740993.0,
    9.223372036854775e18, 9.223372036854775807e18, -9.223372036854775808e18, 1e19, -1e19, 1e38, 1e39, 1.7e308, 5e-324,
    123456789.125, 1356998400.123456, -1.5e-6, 253402300800.0, 9.3e12, -9.3e12, NAN, INF, -INF,
]  # fmt: skip
FLOATS = [0.0, -0.0, 0.5, -2.5, 0.25, 16777216.0, 3.0, NAN, INF, -INF]
INTEGERS = [
    0, 1, -1, 2, -3, 5, 7, 10, 15, 25, -25, 127, 128, -129, 255, 300, 32767, 32768, -32769, 2**31 - 1, 2**31, -(2**31),
    2**32, 2**53 + 1, 1_356_998_400, 253_402_300_800, 9_223_372_036_854, 9_223_372_036_855, -9_223_372_036_855,
    10**15, MOST, MOST - 1, -(2**63), -MOST,
]  # fmt: skip
NARROW = {
    "i": [0, 1, -1, 7, 300, 2**31 - 1, -(2**31)],
    "h": [0, 3, -9, 300, 2**15 - 1, -(2**15)],
    "b": [0, 5, 127, -128],
}
DECIMALS = [Decimal(text) for text in ("0", "0.1", "-0.1", "2.675", "1.005", "999999999.999", "-12.5", "3", "0.125")]
MOMENTS = [
    0, -1, 1, SECOND - 1, -SECOND, 15_706 * DAY, 15_706 * DAY + 37_800 * SECOND + 500_000, 15_706 * DAY - 1,
    2_932_897 * DAY - 1, 2_932_897 * DAY, 9_000_000 * DAY + 1, -719_162 * DAY, -719_163 * DAY, -800_000 * DAY + 7,
    300 * SECOND, -129 * SECOND, 2**31 * SECOND, 2**40 * SECOND, MOST, DAY - 2**63,
]  # fmt: skip
DATES = [0, -1, 15_706, 15_765, 2_932_896, 2_932_897, 9_000_000, -719_162, -719_163, -800_000, 11_016]
"""Days since the epoch, of moments that microseconds in 64 bits hold."""

POOLS: dict[str, list[Any]] = {
    "x": DOUBLES, "y": DOUBLES, "r": FLOATS, "c": DECIMALS, "n": INTEGERS, "m": INTEGERS, **NARROW, "s": TEXTS,
    "u": TEXTS, "f": [True, False], "ts": MOMENTS, "d": DATES,
}  # fmt: skip


def odd_rows(seed: int, count: int = 120) -> list[dict[str, Any]]:
    """Rows of one value of each column; moments are microseconds, dates days since the epoch; one in nine is NULL."""
    rng = random.Random(seed)
    return [
        {name: None if rng.random() < 1 / 9 else rng.choice(pool) for name, pool in POOLS.items()} for _ in range(count)
    ]


class Pair(NamedTuple):
    """One part of a predicate, as PatternLake and as Spark read it."""

    ours: str
    spark: str


def put(form: str, *parts: Pair) -> Pair:
    """A form with parts in both languages."""
    return Pair(form.format(*(part.ours for part in parts)), form.format(*(part.spark for part in parts)))


def quoted(text: str) -> str:
    """A text as a constant."""
    escaped = "".join(f"\\u{ord(c):04x}" if c < " " or c == "\x7f" else c for c in text.replace("\\", "\\\\"))
    return "'" + escaped.replace("'", "\\'") + "'"


class Predicates:
    """Random predicates."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def one(self) -> Pair:
        """One that is TRUE, FALSE or NULL."""
        return self.truth(3)

    def pick(self, *ways: Any) -> Pair:
        made: Pair = self.rng.choice(ways)()
        return made

    def column(self, *names: str) -> Pair:
        """A column. Narrow integers are computed as BIGINT, FLOAT and DECIMAL as DOUBLE."""
        name = self.rng.choice(names)
        wide = {
            "tinyint": "BIGINT",
            "smallint": "BIGINT",
            "int": "BIGINT",
            "float": "DOUBLE",
            "decimal(12,3)": "DOUBLE",
        }
        return Pair(name, f"CAST({name} AS {wide[SCHEMA[name]]})" if SCHEMA[name] in wide else name)

    def whole(self) -> Pair:
        """A constant; integers are BIGINT."""
        number = self.rng.choice([0, 1, 2, 3, 7, 10, 127, 300, 32768, 2**31, 2**53 + 1, MOST])
        return Pair(str(number), f"{number}L")

    def fraction(self) -> Pair:
        """A constant with a point, which is DOUBLE."""
        text = self.rng.choice(["0.0", "0.1", "0.5", "2.5", "2.675", "1e3", "1.5e10", "300.0", "9e18"])
        return Pair(text, f"{text}D")

    def cast(self, part: Pair, to: str) -> Pair:
        """A cast, of which narrow integers come as BIGINT, FLOAT and DECIMAL as DOUBLE."""
        ours, spark = f"CAST({part.ours} AS {to})", f"CAST({part.spark} AS {to})"
        if to in ("INT", "SMALLINT", "TINYINT"):
            return Pair(ours, f"CAST({spark} AS BIGINT)")
        return Pair(ours, f"CAST({spark} AS DOUBLE)" if to.startswith(("FLOAT", "DECIMAL")) else spark)

    def any_of(self, kind: Any, depth: int) -> list[Any]:
        """Ways that every type has."""

        def same() -> Pair:
            return kind(depth - 1)

        return [
            lambda: put("COALESCE({}, {})", same(), same()),
            lambda: put("LEAST({}, {})", same(), same()),
            lambda: put("GREATEST({}, {}, {})", same(), same(), same()),
            lambda: put("NULLIF({}, {})", same(), same()),
            lambda: put("CASE WHEN {} THEN {} ELSE {} END", self.truth(depth - 1), same(), same()),
        ]

    def double(self, depth: int) -> Pair:
        leaves = [lambda: self.column("x", "y", "r", "c"), self.fraction]
        if depth <= 0:
            return self.pick(*leaves)
        below = depth - 1
        decimals = self.rng.choice(["DECIMAL(5,2)", "DECIMAL(38,0)", "DECIMAL(12,6)", "DECIMAL(3,3)", "DECIMAL(20,1)"])
        return self.pick(
            *leaves,
            lambda: put("({} " + self.rng.choice("+-*/%") + " {})", self.double(below), self.number(below)),
            lambda: put("({} / {})", self.integer(below), self.integer(below)),
            lambda: put("ABS({})", self.double(below)),
            lambda: put("(-{})", self.double(below)),
            lambda: put(f"ROUND({{}}, {self.rng.choice([-3, -1, 0, 1, 2, 5])})", self.double(below)),
            lambda: put("SQRT({})", self.number(below)),
            lambda: self.cast(self.text(0), self.rng.choice(["DOUBLE", "FLOAT", decimals])),
            lambda: self.cast(self.number(below), self.rng.choice(["DOUBLE", "FLOAT", decimals])),
            lambda: self.cast(self.moment(below), self.rng.choice(["DOUBLE", "FLOAT"])),
            lambda: self.cast(self.truth(0), "DOUBLE"),
            *self.any_of(self.double, depth),
        )

    def integer(self, depth: int) -> Pair:
        leaves = [lambda: self.column("n", "m", "i", "h", "b"), self.whole]
        if depth <= 0:
            return self.pick(*leaves)
        below = depth - 1
        to = self.rng.choice(["BIGINT", "INT", "SMALLINT", "TINYINT"])
        return self.pick(
            *leaves,
            lambda: put("({} " + self.rng.choice("+-*%") + " {})", self.integer(below), self.integer(below)),
            lambda: put("ABS({})", self.integer(below)),
            lambda: put("(-{})", self.integer(below)),
            lambda: put(f"ROUND({{}}, {self.rng.choice([-19, -3, -1, 0, 2])})", self.integer(below)),
            lambda: put(self.rng.choice(["FLOOR", "CEIL"]) + "({})", self.double(below)),
            lambda: put("LENGTH({})", self.text(below)),
            lambda: self.cast(self.text(0), to),
            lambda: self.cast(self.number(below), to),
            lambda: self.cast(self.moment(below), to),
            lambda: self.cast(self.truth(0), to),
            *self.any_of(self.integer, depth),
        )

    def number(self, depth: int) -> Pair:
        return self.pick(lambda: self.double(depth), lambda: self.integer(depth))

    def text(self, depth: int) -> Pair:
        def constant() -> Pair:
            text = quoted(self.rng.choice(TEXTS))
            return Pair(text, text)

        leaves = [lambda: self.column("s", "u"), lambda: self.column("s", "u"), constant]
        if depth <= 0:
            return self.pick(*leaves)
        below = depth - 1
        at, long = self.rng.choice([-3, -1, 0, 1, 2, 5]), self.rng.choice([-1, 0, 1, 2, 10])
        return self.pick(
            *leaves,
            lambda: put("CONCAT({}, {})", self.text(below), self.text(below)),
            lambda: put("({} || {})", self.text(below), self.integer(0)),
            lambda: put(self.rng.choice(["LOWER", "UPPER"]) + "({})", self.text(below)),
            lambda: put(f"SUBSTRING({{}}, {at})", self.text(below)),
            lambda: put(f"SUBSTRING({{}}, {at}, {long})", self.text(below)),
            lambda: self.cast(self.integer(below), "STRING"),
            lambda: self.cast(self.column("x", "y"), "STRING"),
            lambda: self.cast(self.moment(below), "STRING"),
            lambda: self.cast(self.day(below), "STRING"),
            lambda: self.cast(self.truth(0), "STRING"),
            *self.any_of(self.text, depth),
        )

    def moment(self, depth: int) -> Pair:
        leaves = [lambda: self.column("ts"), lambda: Pair(*["TIMESTAMP '2013-01-01 10:30:00'"] * 2)]
        if depth <= 0:
            return self.pick(*leaves)
        return self.pick(
            *leaves,
            lambda: self.cast(self.column("s", "u"), "TIMESTAMP"),
            lambda: self.cast(self.number(depth - 1), "TIMESTAMP"),
            lambda: self.cast(self.day(depth - 1), "TIMESTAMP"),
            *self.any_of(self.moment, depth),
        )

    def day(self, depth: int) -> Pair:
        leaves = [lambda: self.column("d"), lambda: Pair(*["DATE '2013-01-01'"] * 2)]
        if depth <= 0:
            return self.pick(*leaves)
        return self.pick(
            *leaves,
            lambda: self.cast(self.column("s", "u"), "DATE"),
            lambda: self.cast(self.moment(depth - 1), "DATE"),
            *self.any_of(self.day, depth),
        )

    def truth(self, depth: int) -> Pair:
        if depth <= 0:
            return self.column("f")
        below = depth - 1
        sign = self.rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        kinds = [self.double, self.integer, self.number, self.text, self.moment, self.day]
        kind = self.rng.choice(kinds)
        like = self.rng.choice(["a%", "%b", "_", "__", "a\\\\%b", "%", "", "%0%", "a\\u0000%", "%\\u0000"])
        return self.pick(
            lambda: put(f"({{}} {sign} {{}})", kind(below), kind(below)),
            lambda: put(f"({{}} {sign} {{}})", kind(below), kind(below)),
            lambda: put(f"({{}} {sign} {{}})", self.column("s", "u"), self.rng.choice([*kinds, self.truth])(0)),
            lambda: put("({} IN ({}, {}, NULL))", kind(below), kind(0), kind(0)),
            lambda: put("({} NOT IN ({}, {}))", kind(below), kind(below), kind(below)),
            lambda: put("({} BETWEEN {} AND {})", kind(below), kind(0), kind(0)),
            lambda: put("({} IS NULL)", kind(below)),
            lambda: put(f"({{}} LIKE '{like}')", self.text(below)),
            lambda: put("({} AND {})", self.truth(below), self.truth(below)),
            lambda: put("({} OR {})", self.truth(below), self.truth(below)),
            lambda: put("(NOT {})", self.truth(below)),
            lambda: put("({} IS NOT TRUE)", self.truth(below)),
            lambda: self.cast(self.text(0), "BOOLEAN"),
            lambda: self.cast(self.number(below), "BOOLEAN"),
        )
