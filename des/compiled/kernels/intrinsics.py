"""Instructions that Numba has no words for: the only module in which LLVM's are written by hand.

- **Records by number**, `at`: an array is seven words to pass and counts references to it, a record
  is one word without a count. So kernels share the first record of each array.
- **Views of arrays**, `views_of`: two or three words without a count, where an array is and how
  large. Indices are not negative and not checked.
- **Vectors** of one double a lane, and `vector_rows` in memory: every operation rounds as the one
  on single numbers does, so a lane has the bits that it would have alone. Masks are whole numbers
  with one bit per lane. A loop over lanes is vectorised only if no two arrays can overlap. Rows of
  an array of one axis hold a number each, so one kernel runs one lane or all.

An array must outlive its records, views and rows.
"""

import operator
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global

LANES = 16
"""Lanes of a vector: two of the widest registers, so that one is not waited for."""

Vector = Any
Rows = Any
Decorator = Callable[[Callable[..., Any]], Any]

_types: Any = types  # Numba declares no types, or narrower ones, for these
_intrinsic: Decorator = extending.intrinsic
_lowered: Callable[..., Decorator] = cast(Any, extending.lower_builtin)
_parts_of: Any = cgutils.unpack_tuple
_struct_of: Any = cgutils.make_anonymous_struct

_NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
_FLAGS = ir.VectorType(ir.IntType(1), LANES)
_WORD = ir.IntType(64)


class _VectorType(types.Type):
    """Numba type of a vector."""


class _ViewType(types.Type):
    """Numba type of a view; of more than two axes all but the last are one.

    Rows are a view of two axes whose number of columns is known, which is one word.
    """

    def __init__(self, dtype: types.Type, num_axes: int, num_columns: int | None = None) -> None:
        self.dtype, self.num_axes, self.num_columns = dtype, num_axes, num_columns
        columns = "" if num_columns is None else f", {num_columns} columns"
        super().__init__(f"view of {num_axes} axes of {dtype}{columns}")


_VECTOR = _VectorType(f"vector of {LANES} lanes")
_ROWS = _ViewType(types.float64, 2, LANES)
_NUMBER_ROWS = _ViewType(types.float64, 2, 1)
_ALONE = {_VECTOR: types.float64, _ROWS: _NUMBER_ROWS}


@extending.register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, _NUMBERS)  # type: ignore[no-untyped-call]


@extending.register_model(_ViewType)
class _ViewModel(models.StructModel):
    def __init__(self, manager: Any, kind: _ViewType) -> None:
        members = [("first", _types.CPointer(_VECTOR if kind == _ROWS else kind.dtype))]
        if kind.num_columns is None:
            members += [("size", types.intp), ("num_columns", types.intp)][: kind.num_axes]
        super().__init__(manager, kind, members)  # type: ignore[no-untyped-call]


extending.make_attribute_wrapper(_ViewType, "size", "size")


@_intrinsic
def at(typing_context: Any, first: types.Record, number: types.Integer) -> Any:
    """Record of an array by number, given its first one: ``at(a[0], n)`` is ``a[n]``."""

    def generate(context: Any, build: Any, signature: Any, given: Any) -> ir.Value:
        here, steps = given
        offset = build.mul(context.cast(build, steps, number, types.intp), _WORD(first.size))
        byte = build.bitcast(here, ir.IntType(8).as_pointer())
        return build.bitcast(build.gep(byte, [offset], inbounds=True), here.type)

    return first(first, number), generate


def _viewed(kind: types.Type) -> Any:
    """Type of what `views_of` makes of a type."""
    if isinstance(kind, types.Array):
        if kind.layout != "C":
            raise TypeError(f"views: arrays must be contiguous, got {kind}")
        return _ViewType(kind.dtype, min(kind.ndim, 2))
    if isinstance(kind, _types.BaseNamedTuple):
        return _types.NamedTuple([_viewed(one) for one in kind.types], kind.instance_class)
    return kind


def _view(context: Any, build: Any, kind: types.Type, value: ir.Value) -> ir.Value:
    """Write the instructions that make views of a value."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, build, value)
        shape = _parts_of(build, array.shape)
        return _struct_of(build, [array.data, shape[0], *shape[1:][-1:]])
    if isinstance(kind, _types.BaseNamedTuple):
        parts = zip(kind.types, _parts_of(build, value), strict=True)
        fields = [_view(context, build, one, part) for one, part in parts]
        return context.make_tuple(build, _viewed(kind), fields)
    return value


@_intrinsic
def views_of(typing_context: Any, value: types.Type) -> Any:
    """Views of an array, or of all arrays of a named tuple; all else stays as it is."""

    def generate(context: Any, build: Any, signature: Any, given: Any) -> ir.Value:
        return _view(context, build, value, given[0])

    return _viewed(value)(value), generate


@_intrinsic
def vector_rows(typing_context: Any, array: types.Type) -> Any:
    """Rows of an array or view whose last axis are the lanes, counted through all axes before."""
    view = _viewed(array)
    if not isinstance(view, _ViewType) or view.dtype != types.float64:
        return None
    rows, row = (_ROWS, _NUMBERS) if view.num_axes == 2 else (_NUMBER_ROWS, ir.DoubleType())

    def generate(context: Any, build: Any, signature: Any, given: Any) -> ir.Value:
        first = build.extract_value(_view(context, build, array, given[0]), 0)
        return _struct_of(build, [build.bitcast(first, row.as_pointer())])

    return rows(array), generate


class _Element(AbstractTemplate):
    """Types of reading and writing an element of a view."""

    def generic(self, args: Any, kws: Any) -> Any:
        view, where, *value = args
        if not isinstance(view, _ViewType):
            return None
        axes = tuple(where) if isinstance(where, _types.BaseTuple) else (where,)
        if len(axes) != view.num_axes or not all(isinstance(one, types.Integer) for one in axes):
            return None
        return _types.none(view, where, view.dtype) if value else view.dtype(view, where)


for _each in (operator.getitem, operator.setitem):
    infer_global(_each)(_Element)  # type: ignore[no-untyped-call]


def _address(context: Any, build: Any, kinds: Any, given: Any) -> ir.Value:
    """Write the instructions that find an element of a view."""
    view, where = kinds[:2]
    first, *sizes = _parts_of(build, given[0])
    if view.num_axes == 1:
        return build.gep(first, [context.cast(build, given[1], where, types.intp)])
    row, column = (
        context.cast(build, index, kind, types.intp)
        for index, kind in zip(_parts_of(build, given[1]), where, strict=True)
    )
    num_columns = _WORD(view.num_columns) if view.num_columns else sizes[-1]
    first = build.bitcast(first, ir.DoubleType().as_pointer()) if view.num_columns else first
    return build.gep(first, [build.add(build.mul(row, num_columns), column)])


@_lowered(operator.getitem, _ViewType, types.Any)
def _read(context: Any, build: Any, signature: Any, given: Any) -> ir.Value:
    address = _address(context, build, signature.args, given)
    return context.unpack_value(build, signature.return_type, address)


@_lowered(operator.setitem, _ViewType, types.Any, types.Any)
def _write(context: Any, build: Any, signature: Any, given: Any) -> ir.Value:
    address = _address(context, build, signature.args, given)
    context.pack_value(build, signature.args[2], given[2], address)
    return context.get_dummy_value()


def _instruction(result: types.Type, *wanted: types.Type) -> Decorator:
    """Let compiled code call what writes an instruction, on vectors or all on single numbers."""

    def compiled(write: Callable[..., Any]) -> Any:
        def define(context: Any, *given: types.Type) -> Any:
            for kinds in (wanted, tuple(_ALONE.get(one, one) for one in wanted)):
                pairs = zip(given, kinds, strict=True)
                if None not in [context.can_convert(*pair) for pair in pairs]:
                    made = result if kinds == wanted else _ALONE.get(result, result)
                    return made(*kinds), generate
            return None

        def generate(context: Any, build: Any, signature: Any, given: Any) -> ir.Value:
            written = write(build, *given)
            return context.get_dummy_value() if result == types.void else written

        return _intrinsic(wraps(write)(define))

    return compiled


@_instruction(_VECTOR, _ROWS, types.intp)
def load(build: Any, rows: Any, row: Any) -> Any:
    """Return a row."""
    return build.load(build.gep(build.extract_value(rows, 0), [row]), align=8)


@_instruction(types.void, _ROWS, types.intp, _VECTOR)
def store(build: Any, rows: Any, row: Any, vector: Any) -> Any:
    """Write a row."""
    return build.store(vector, build.gep(build.extract_value(rows, 0), [row]), align=8)


@_instruction(_VECTOR, types.float64)
def splat(build: Any, number: Any) -> Any:
    """Give all lanes the same number."""
    empty = ir.Constant(_NUMBERS, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return build.shuffle_vector(build.insert_element(empty, number, _WORD(0)), empty, zeros)


def _mask(build: Any, how: str, left: ir.Value, right: ir.Value) -> ir.Value:
    flags = build.fcmp_ordered(how, left, right)
    lanes = build.bitcast(flags, ir.IntType(LANES)) if flags.type == _FLAGS else flags
    return build.zext(lanes, _WORD)


@_instruction(types.int64, _VECTOR, _VECTOR)
def below(build: Any, left: Any, right: Any) -> Any:
    """Mask of the lanes in which the first number is less; not where either is not a number."""
    return _mask(build, "<", left, right)


@_instruction(_VECTOR, _VECTOR, _VECTOR)
def larger(build: Any, left: Any, right: Any) -> Any:
    """Return the larger number in each lane, ``left if left > right else right``."""
    return build.select(build.fcmp_ordered(">", left, right), left, right)


def _overload_operator(function: Callable[..., Any], name: str) -> None:
    """Let an operator on two vectors, or on one and a number, be a method of LLVM's builder."""

    @_instruction(_VECTOR, _VECTOR, _VECTOR)
    def compute(build: Any, left: Any, right: Any) -> Any:
        return getattr(build, name)(left, right)

    @extending.overload(function, strict=False)
    def _operator(left: types.Type, right: types.Type) -> Callable[..., Any] | None:
        if left != _VECTOR:
            return None
        if right != _VECTOR:
            return lambda left, right: compute(left, splat(right))
        return lambda left, right: compute(left, right)  # noqa: PLW0108 - must be Python


_overload_operator(operator.add, "fadd")
_overload_operator(operator.sub, "fsub")
_overload_operator(operator.mul, "fmul")
