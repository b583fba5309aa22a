"""How kernels are compiled that only other kernels call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])

WITHOUT_ENTRY = {"cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of numba: no code by which Python or C could call a kernel. It takes the arguments apart, and is most of what
compiling a small kernel costs."""


def subkernel(function: _Function) -> _Function:
    """Compile a function that only compiled ones call; called from Python it would end the process."""
    jit: Any = njit  # its types leave the options out
    return cast(_Function, jit(**WITHOUT_ENTRY)(function))


def uncounted(function: _Function) -> _Function:
    """Compile a subkernel that counts no references to arrays: it reads and writes those that it is given, makes none.

    Counting costs more than a small function does that is called at each step with many arrays.
    """
    jit: Any = njit
    return cast(_Function, jit(_nrt=False, **WITHOUT_ENTRY)(function))


def inlined(function: _Function) -> _Function:
    """Compile a small function into each kernel that calls it: what it is given is not handed over at each call."""
    return cast(_Function, njit(inline="always")(function))
