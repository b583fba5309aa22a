"""The best plain Spark SQL that we know for the questions of `beside_peers.py`, over a view `keyed` of the events.

Of each key the events are ranked from the last to the first, so that the nearest next B, and the nearest C behind that,
are carried back by windows of the same order: Spark sorts once. What `past_last` leaves out depends on what was kept
before, which is a fold over a key's matches; which B rises, one over the hundred events behind each A. Where all is
contiguous, a run of rising B's ends what the event before it began.
"""

from __future__ import annotations

_RANKED = """
ranked AS (
  SELECT key, name, position, x, row_number() OVER (PARTITION BY key ORDER BY position DESC) AS rank FROM keyed
)"""

_NEAREST = f"""{_RANKED},
before_c AS (
  SELECT *, last(CASE WHEN name = 'C' THEN struct(rank, position) END, true) OVER earlier AS c
  FROM ranked WHERE name IN ('A', 'B', 'C')
  WINDOW earlier AS (PARTITION BY key ORDER BY position DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
before_b AS (
  SELECT *,
    last(CASE WHEN name = 'B' THEN coalesce(c, named_struct('rank', -1, 'position', -1L)) END, true) OVER earlier AS b
  FROM before_c
  WINDOW earlier AS (PARTITION BY key ORDER BY position DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
found AS (
  SELECT key, position AS first, b.position AS last
  FROM before_b WHERE name = 'A' AND b.rank > 0 AND rank - b.rank < 100
)"""

_FOLLOWING = """
following AS (
  SELECT name, position,
    collect_list(struct(name, x, position)) OVER (PARTITION BY key ORDER BY position
      ROWS BETWEEN 1 FOLLOWING AND 99 FOLLOWING) AS events
  FROM keyed
),
folded AS (
  SELECT position, aggregate(events, struct(0L AS kept, CAST('-Infinity' AS DOUBLE) AS highest, -1L AS last),
    (so, e) -> CASE
      WHEN so.last >= 0 THEN so
      WHEN e.name = 'B' AND e.x > so.highest THEN struct(so.kept + 1 AS kept, e.x AS highest, so.last AS last)
      WHEN e.name = 'C' AND so.kept > 0 THEN struct(so.kept AS kept, so.highest AS highest, e.position AS last)
      ELSE so END) AS so
  FROM following WHERE name = 'A'
)"""

_RUNS = """
beside AS (
  SELECT *, lag(name) OVER along AS before, lag(x) OVER along AS x_before, row_number() OVER along AS rank
  FROM keyed WINDOW along AS (PARTITION BY key ORDER BY position)
),
runs AS (
  SELECT *, last(CASE WHEN NOT (name = 'B' AND (before = 'A' OR (before = 'B' AND x > x_before)) IS TRUE)
      THEN struct(name, position, rank) END, true) OVER (PARTITION BY key ORDER BY position) AS run
  FROM beside
),
ended AS (SELECT *, lag(run) OVER (PARTITION BY key ORDER BY position) AS opened FROM runs)"""

SUMS = "SELECT count(*), coalesce(sum(first), 0), coalesce(sum(last), 0)"
TEXTS = {
    "sequence": f"WITH {_NEAREST} {SUMS}, count(*) FROM found",
    "sequence, past_last": f"""WITH {_NEAREST},
kept AS (
  SELECT inline(aggregate(sort_array(collect_list(struct(first, last))), CAST(array() AS ARRAY<STRUCT<first: BIGINT,
    last: BIGINT>>), (so, m) -> CASE WHEN size(so) = 0 OR m.first > so[size(so) - 1].last THEN array_append(so, m)
    ELSE so END))
  FROM found GROUP BY key
) {SUMS}, count(*) FROM kept""",
    "rising": f"""WITH {_FOLLOWING}
SELECT count(*), sum(position), sum(so.last), sum(so.kept) FROM folded WHERE so.last >= 0""",
    "rising, strict": f"""WITH {_RUNS}
SELECT count(*), sum(opened.position), sum(position), sum(rank - opened.rank - 1) FROM ended
WHERE name = 'C' AND before = 'B' AND opened.name = 'A' AND rank - opened.rank < 100""",
}
"""Question to its text; matches, sums of first and of last positions, and of B's."""
