"""How kernels are compiled: without counting references to the arrays that they are handed.

Every call hands on dozens of arrays, and counting references to them took nine tenths of the time. A kernel that makes
no array of its own has no need of it. Such a kernel copies element by element: a slice is an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function that makes no array."""
    jit: Any = njit  # its types leave the option out
    return cast(_Function, jit(cache=True, _nrt=False)(function))
