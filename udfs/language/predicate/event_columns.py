"""Columns of events as predicates read them, from the columns of the table `events`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.language.predicate.columns import Column, typed_column

_BUILT_IN = (("key", "string"), ("name", "string"), ("step", "bigint"), ("probability", "double"))
_ITEM = pa.struct([("key", pa.string()), ("value", pa.string())])


def event_columns(rows: Mapping[str, pa.Array], wanted: Collection[str], types: Mapping[str, str]) -> dict[str, Column]:
    """Typed columns of n events.

    Parameters
    ----------
    rows
        ``key``, ``name``, ``step``, ``probability`` and ``attributes`` (map of texts) of `events`, n values each.
    wanted
        Names of columns; those that are neither built in nor attributes are left out.
    types
        Attribute to Spark type.
    """
    columns = {name: typed_column(rows[name].cast(pa.string()), kind) for name, kind in _BUILT_IN if name in wanted}
    texts = attribute_texts(rows, sorted(set(wanted) & types.keys()))
    return columns | {name: typed_column(values, types[name]) for name, values in texts.items()}


def attribute_texts(rows: Mapping[str, pa.Array], names: Sequence[str]) -> dict[str, pa.StringArray]:
    """Texts of some attributes of n events; `rows` as for `event_columns`.

    Notes
    -----
    Every event of a stream has the same attributes in the same order, so the map's items are a matrix.
    """
    if not names:
        return {}
    written = rows["attributes"]
    first = [item[0] for item in written[0].as_py()] if len(written) else []
    texts = pc.list_flatten(written.cast(pa.list_(_ITEM))).field("value") if len(written) else pa.array([], pa.string())
    found = {}
    for name in names:
        if name in first:
            place = np.arange(len(written)) * len(first) + first.index(name)
            found[name] = texts.take(pa.array(place))
        else:
            found[name] = pa.nulls(len(written), pa.string())
    return found
