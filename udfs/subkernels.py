"""How kernels are compiled: those that only other kernels call, and those that count no references to arrays.

Counting references to the dozens of arrays that a call hands on took nine tenths of the time of the event machines, and
copying their addresses, lengths and strides half of what was left. A kernel that makes no array of its own has no need
of the first, so it copies element by element, as a slice is an array; and `kernel` spares the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])

_jit: Any = njit  # its types leave the options out
_WITHOUT_ENTRY = {"cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of numba: no code by which Python or C could call a kernel. It takes the arguments apart, and is most of what
compiling a small kernel costs."""


def subkernel(function: _Function) -> _Function:
    """Compile a function that only compiled ones call; called from Python it would end the process."""
    return cast(_Function, _jit(**_WITHOUT_ENTRY)(function))


def uncounted(function: _Function) -> _Function:
    """Compile a subkernel that counts no references to arrays: it reads and writes those that it is given, makes none.

    It stays one piece, so that compiling its many callers does not take it in again and again. Counting costs more than
    a small function does that is called at each step with many arrays.
    """
    return cast(_Function, _jit(_nrt=False, **_WITHOUT_ENTRY)(function))


def kernel(function: _Function) -> _Function:
    """Compile an uncounted subkernel into each of its callers, so that no call copies what it is handed."""
    return cast(_Function, _jit(_nrt=False, forceinline=True, **_WITHOUT_ENTRY)(function))


def entry(function: _Function) -> _Function:
    """Compile a function that makes no array and that Python calls."""
    return cast(_Function, _jit(cache=True, _nrt=False)(function))


def inlined(function: _Function) -> _Function:
    """Compile a small function into each kernel that calls it: what it is given is not handed over at each call."""
    return cast(_Function, njit(inline="always")(function))


@subkernel
def resized(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A copy of an array with room for `size` numbers; zeros behind those that there are."""
    larger = np.zeros(size, array.dtype)
    larger[: len(array)] = array
    return larger
