"""Values as integers whose order and equality are those of the values (SPEC section 1: as Spark orders them)."""

from __future__ import annotations

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.language.predicate.columns import Column


def order_keys(left: Column, right: Column, *, ordered: bool = True) -> tuple[IntArray, IntArray]:
    """Keys of two columns that are compared with each other.

    Parameters
    ----------
    left, right
        Columns of one value type, of n and m rows.
    ordered
        False where only equality matters; strings are not sorted then.

    Returns
    -------
    (int64[n], int64[m])
        A key is less than, equal to or greater than another exactly where the values are. For doubles NaN is above all
        numbers and equal to itself, and -0.0 equals 0.0. Keys of strings mean something beside each other only, and
        the keys of NULLs nothing.
    """
    if "string" in (left.type, right.type):
        # Arrow orders texts by their UTF-8 bytes, as Spark does.
        texts = [pa.array(side.values, pa.string()) if side.arrow is None else side.arrow for side in (left, right)]
        encoded = pa.concat_arrays(texts).dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        if ordered:
            rank = np.empty(len(encoded.dictionary), np.int64)
            rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
            codes = rank[codes]
        return codes[: len(left.values)], codes[len(left.values) :]
    return _number_keys(left), _number_keys(right)


def _number_keys(column: Column) -> IntArray:
    if column.type != "double":
        return column.values.astype(np.int64)
    # Adding zero turns -0.0 into 0.0; every NaN becomes the one with the greatest key.
    values = np.where(np.isnan(column.values), np.nan, column.values + 0.0)
    bits = values.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def paired(
    left: tuple[IntArray, IntArray], right: tuple[IntArray, IntArray], *, gaps: bool = False
) -> tuple[IntArray, IntArray]:
    """Codes of pairs (group, key) on two sides, so that equal pairs have equal codes.

    Parameters
    ----------
    left, right
        Group and key of each row: int64[n] and int64[n], int64[m] and int64[m].
    gaps
        Keys that could serve as codes may do so: fewer than twice as many as rows, none below 0.

    Returns
    -------
    (int64[n], int64[m])
        Codes from 0; without `gaps` each is somewhere, and they are in the order of their first row.
    """
    size = len(left[0])
    if gaps and size and len(right[0]) and all((groups == left[0][0]).all() for groups in (left[0], right[0])):
        most = 2 * (size + len(right[0]))
        if all(keys.min() >= 0 and keys.max() < most for keys in (left[1], right[1])):
            return left[1], right[1]
    groups, keys = (np.concatenate(sides) for sides in zip(left, right, strict=True))
    if len(groups) and (groups != groups[0]).any():
        groups, _ = pd.factorize(groups)
        keys, _ = pd.factorize(keys)
        keys = groups * (int(keys.max(initial=0)) + 1) + keys
    both, _ = pd.factorize(keys)
    both = both.astype(np.int64)
    return both[:size], both[size:]
