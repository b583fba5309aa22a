"""SIESTA's index of pairs of names (Mavroudopoulos et al., the thesis' [25]) in plain Spark SQL over two Delta tables.

**Pairs**: of two names a and b in a trace the place of the first a and of the nearest b behind it, then of the next a
behind that b and of its nearest b, and so on: SIESTA's pairs by skip till next match. All pairs of an a and a b are in
one file, and files are sorted by a, b and trace, so that the indexes of their pages let a query read the pages of its
own pairs and little else. (A partition for each a and b, as a key-value store would have it, makes hundreds of small
files.)

**Sequences**: a row a trace, with its events in order, sorted by trace; SIESTA keeps the like beside its index.

Two ways to ask:

- *joined*, as the thesis measured it: a query's pairs are joined where one ends and the next begins. Each row is a true
  sequence, and rows may overlap, but not all traces are found: of ``b a b c`` the pair of a and b ends at the second b,
  and that of b and c begins at the first one, so that ``a ; b ; c`` finds nothing.
- *verified*, as later versions of SIESTA do it: the traces that have all pairs of the query, found in one pass over
  these, are candidates, and nothing else can hold a match; their sequences are read and matched one event after the
  other. That is exact, and the same that ``match_seq(…, verify => true)`` says PARTITION BY the trace.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

# A b ends a pair if there is an a since the b before it: then the first of these begins it, an a that has no a between
# that b and itself. So no rows are made but pairs, and none have to be grouped.
PAIRS = """
WITH numbered AS (
  SELECT trace, name, position, lag(position, 1, 0L) OVER own AS before, row_number() OVER own AS number
  FROM log WINDOW own AS (PARTITION BY trace, name ORDER BY position)
)
SELECT x.name AS a, y.name AS b, y.trace AS trace, x.position AS begin, y.position AS end
FROM numbered y JOIN numbered x
  ON x.trace = y.trace AND x.position > y.before AND x.position < y.position AND x.before <= y.before
UNION ALL
SELECT name, name, trace, before, position FROM numbered WHERE number % 2 = 0
"""

SEQUENCES = "SELECT trace, sort_array(collect_list(struct(position, name))) AS events FROM log GROUP BY trace"

MATCHED = """
SELECT trace, found.begin AS begin, found.end AS end
FROM (
  SELECT trace, explode(aggregate(
    events,
    named_struct('at', 1, 'begin', 0L, 'found', CAST(array() AS ARRAY<STRUCT<begin: BIGINT, end: BIGINT>>)),
    (run, event) -> CASE
      WHEN event.name <> element_at(array({names}), run.at) THEN run
      WHEN run.at < {length}
        THEN named_struct('at', run.at + 1, 'begin', if(run.at = 1, event.position, run.begin), 'found', run.found)
      ELSE named_struct('at', 1, 'begin', 0L, 'found',
        array_append(run.found, named_struct('begin', run.begin, 'end', event.position)))
    END,
    run -> run.found
  )) AS found
  FROM sequences JOIN ({candidates}) USING (trace)
)
"""


def write_pairs(spark: SparkSession, folder: Path) -> None:
    """Write both tables below a folder, from the view `log` of trace, name and position (from 1)."""
    pairs = spark.sql(PAIRS).repartition("a", "b").sortWithinPartitions("a", "b", "trace", "begin")
    pairs.write.format("delta").mode("overwrite").save(str(folder / "pairs"))
    sequences = spark.sql(SEQUENCES).repartitionByRange("trace").sortWithinPartitions("trace")
    sequences.write.format("delta").mode("overwrite").save(str(folder / "sequences"))


def open_pairs(spark: SparkSession, folder: Path) -> None:
    """The views `pairs` and `sequences`, of what `write_pairs` wrote."""
    for name in ("pairs", "sequences"):
        spark.read.format("delta").load(str(folder / name)).createOrReplaceTempView(name)


def joined(names: list[str]) -> str:
    """Trace, begin and end of what the pairs of a query are joined to."""
    steps = [f"(SELECT * FROM pairs WHERE a = '{a}' AND b = '{b}')" for a, b in pairwise(names)]
    joins = "".join(
        f" JOIN {step} p{number} ON p{number}.trace = p0.trace AND p{number}.begin = p{number - 1}.end"
        for number, step in enumerate(steps[1:], start=1)
    )
    return f"SELECT p0.trace, p0.begin, p{len(steps) - 1}.end FROM {steps[0]} p0{joins}"


def candidates(names: list[str]) -> str:
    """The traces that have all pairs of a query."""
    wanted = [f"a = '{a}' AND b = '{b}'" for a, b in dict.fromkeys(pairwise(names))]
    bits = " ".join(f"WHEN {pair} THEN {1 << number}" for number, pair in enumerate(wanted))
    return (
        f"SELECT trace FROM pairs WHERE {' OR '.join(f'({pair})' for pair in wanted)} "
        f"GROUP BY trace HAVING bit_or(CASE {bits} END) = {(1 << len(wanted)) - 1}"
    )


def verified(names: list[str]) -> str:
    """Trace, begin and end of all sequences: a start takes the nearest next events, the next start is behind them."""
    quoted = ", ".join(f"'{name}'" for name in names)
    return MATCHED.format(names=quoted, length=len(names), candidates=candidates(names))
