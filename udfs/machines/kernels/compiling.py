"""How kernels are compiled: without counting references to the arrays that they are handed, and into their callers.

Every call hands on the addresses, lengths and strides of dozens of arrays. Counting references to them took nine tenths
of the time, and copying them half of what was left. A kernel that makes no array of its own has no need of the first,
so it copies element by element, as a slice is an array; and none is called but from another one, into which it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

from patternlake.udfs.subkernels import WITHOUT_ENTRY

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function that makes no array and that only compiled ones call."""
    jit: Any = njit  # its types leave the options out
    return cast(_Function, jit(_nrt=False, forceinline=True, **WITHOUT_ENTRY)(function))


def routine(function: _Function) -> _Function:
    """Compile a function that makes no array, that only compiled ones call and that is handed few arrays.

    It stays one piece, so that compiling its many callers does not take it in again and again.
    """
    jit: Any = njit  # its types leave the options out
    return cast(_Function, jit(_nrt=False, **WITHOUT_ENTRY)(function))


def entry(function: _Function) -> _Function:
    """Compile a function that makes no array and that Python calls."""
    jit: Any = njit  # its types leave the options out
    return cast(_Function, jit(cache=True, _nrt=False)(function))
