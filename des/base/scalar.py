"""Formulas of single numbers that Python runs as they stand, and compiled code too.

They are noted here without Numba, which takes longer to load than most of what uses them;
`des.base.jit` takes them over when the first kernel needs it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_noted: list[Callable[..., Any]] = []
_compilers: list[Callable[[Callable[..., Any]], object]] = []


def scalar(function: FunctionT) -> FunctionT:
    """Leave a function as it is in Python, and compile it into the kernels that call it."""
    _noted.append(function)
    for compiler in _compilers:
        compiler(function)
    return function


def compile_scalars_by(compiler: Callable[[Callable[..., Any]], object]) -> None:
    """Hand over all functions noted so far, and those to come, to what makes them compilable."""
    _compilers.append(compiler)
    for function in _noted:
        compiler(function)
