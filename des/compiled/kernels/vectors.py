"""Vectors of one number a lane for compiled code: an instruction does the same in all lanes.

Numbers are doubles and every operation rounds as the one on single numbers does, so a lane has the
bits that it would have alone. Masks are whole numbers with a bit a lane. A loop over lanes would be
vectorised by the compiler only if it could prove that no two arrays overlap.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, overload, register_model

LANES = 16
"""Lanes of a vector: two of the widest registers, so that one is not waited for."""

ALL_LANES = (1 << LANES) - 1
"""Mask of all lanes."""

Vector = Any
Rows = Any
Generator = Callable[..., ir.Value]
Intrinsic = tuple[Signature, Generator] | None

_NUMBER = ir.DoubleType()
_NUMBERS = ir.VectorType(_NUMBER, LANES)
_FLAGS = ir.VectorType(ir.IntType(1), LANES)
_BITS = ir.IntType(LANES)
_WORD = ir.IntType(64)


def _intrinsic(define: Callable[..., Intrinsic]) -> Any:
    """Let compiled code call what ``define`` gives the types and the instructions of."""
    return intrinsic(define)


class _VectorType(types.Type):
    """Numba type of a vector."""


class _RowsType(types.Type):
    """Numba type of rows of lanes: the address of the first."""


VECTOR = _VectorType(f"vector of {LANES} lanes")
ROWS = _RowsType(f"rows of {LANES} lanes")


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, _NUMBERS)  # type: ignore[no-untyped-call]


@register_model(_RowsType)
class _RowsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, _NUMBER.as_pointer())  # type: ignore[no-untyped-call]


@_intrinsic
def vector_rows(context: Any, array: types.Type) -> Intrinsic:
    """Rows of an array whose last axis are the lanes, counted through all axes before.

    The array must outlive them. Unlike an array they are one word to pass, without a reference
    count.
    """
    if not isinstance(array, types.Array) or array.dtype != types.float64 or array.layout != "C":
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        return context.make_array(array)(context, builder, given[0]).data

    return ROWS(array), generate


def _element(context: Any, builder: Any, signature: Signature, given: Any, count: int) -> ir.Value:
    """Address of (row) or of (row, lane), the first arguments after the rows."""
    row, *lane = (
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(given[1:count], signature.args[1:count], strict=True)
    )
    offset = builder.mul(row, _WORD(LANES))
    return builder.gep(given[0], [builder.add(offset, lane[0]) if lane else offset])


@_intrinsic
def load(context: Any, rows: types.Type, row: types.Type) -> Intrinsic:
    """Return a row."""
    if rows != ROWS or not isinstance(row, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        address = _element(context, builder, signature, given, 2)
        return builder.load(builder.bitcast(address, _NUMBERS.as_pointer()), align=8)

    return VECTOR(rows, row), generate


@_intrinsic
def store(context: Any, rows: types.Type, row: types.Type, vector: types.Type) -> Intrinsic:
    """Write a row."""
    if rows != ROWS or not isinstance(row, types.Integer) or vector != VECTOR:
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        address = _element(context, builder, signature, given, 2)
        builder.store(given[2], builder.bitcast(address, _NUMBERS.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(rows, row, vector), generate


@_intrinsic
def number_of(context: Any, rows: types.Type, row: types.Type, lane: types.Type) -> Intrinsic:
    """Return the number of one lane of a row; ``rows[row, lane]`` is the same."""
    if rows != ROWS:
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        return builder.load(_element(context, builder, signature, given, 3))

    return types.float64(rows, row, lane), generate


@_intrinsic
def whole_number_of(context: Any, rows: types.Type, row: types.Type, lane: types.Type) -> Intrinsic:
    """Return what a row of whole numbers, seen through an array of them, holds in one lane."""
    if rows != ROWS:
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        address = _element(context, builder, signature, given, 3)
        return builder.load(builder.bitcast(address, _WORD.as_pointer()))

    return types.int64(rows, row, lane), generate


@_intrinsic
def set_number(
    context: Any, rows: types.Type, row: types.Type, lane: types.Type, number: types.Type
) -> Intrinsic:
    """Write the number of one lane of a row; ``rows[row, lane] = number`` is the same."""
    if rows != ROWS or not isinstance(number, types.Number):
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        value = context.cast(builder, given[3], number, types.float64)
        builder.store(value, _element(context, builder, signature, given, 3))
        return context.get_dummy_value()

    return types.void(rows, row, lane, number), generate


@overload(operator.getitem, strict=False)
def _get(rows: types.Type, where: types.Type) -> Callable[..., Any] | None:
    if rows != ROWS or not isinstance(where, types.BaseTuple):
        return None
    return lambda rows, where: number_of(rows, where[0], where[1])


@overload(operator.setitem, strict=False)
def _set(rows: types.Type, where: types.Type, number: types.Type) -> Callable[..., Any] | None:
    if rows != ROWS or not isinstance(where, types.BaseTuple):
        return None
    return lambda rows, where, number: set_number(rows, where[0], where[1], number)


@_intrinsic
def splat(context: Any, number: types.Type) -> Intrinsic:
    """Give all lanes the same number."""
    if not isinstance(number, types.Number):
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        value = context.cast(builder, given[0], number, types.float64)
        empty = ir.Constant(_NUMBERS, ir.Undefined)
        first = builder.insert_element(empty, value, _WORD(0))
        return builder.shuffle_vector(
            first, empty, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        )

    return VECTOR(number), generate


def _of_two(result: types.Type, build: Callable[[Any, ir.Value, ir.Value], ir.Value]) -> Any:
    """Make an intrinsic of two vectors."""

    @_intrinsic
    def compute(context: Any, left: types.Type, right: types.Type) -> Intrinsic:
        if left != VECTOR or right != VECTOR:
            return None

        def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
            return build(builder, *given)

        return result(left, right), generate

    return compute


def _mask(builder: Any, flags: ir.Value) -> ir.Value:
    return builder.zext(builder.bitcast(flags, _BITS), _WORD)


below = _of_two(types.int64, lambda build, *pair: _mask(build, build.fcmp_ordered("<", *pair)))
"""Mask of the lanes in which the first number is less; not where either is not a number."""

equal = _of_two(types.int64, lambda build, *pair: _mask(build, build.fcmp_ordered("==", *pair)))
"""Mask of the lanes in which both numbers are equal."""

larger = _of_two(VECTOR, lambda build, *pair: build.select(build.fcmp_ordered(">", *pair), *pair))
"""Larger number in each lane, ``left if left > right else right``."""


def _overload_operator(function: Callable[..., Any], compute: Any) -> None:
    @overload(function, strict=False)
    def _operator(left: types.Type, right: types.Type) -> Callable[..., Any] | None:
        if left != VECTOR or right != VECTOR:
            return None
        return lambda left, right: compute(left, right)  # noqa: PLW0108 - must be Python


_overload_operator(operator.add, _of_two(VECTOR, lambda build, *pair: build.fadd(*pair)))
_overload_operator(operator.sub, _of_two(VECTOR, lambda build, *pair: build.fsub(*pair)))
_overload_operator(operator.mul, _of_two(VECTOR, lambda build, *pair: build.fmul(*pair)))
_overload_operator(operator.truediv, _of_two(VECTOR, lambda build, *pair: build.fdiv(*pair)))


@_intrinsic
def choose(context: Any, mask: types.Type, one: types.Type, other: types.Type) -> Intrinsic:
    """Take the lanes of a mask from one vector and the rest from the other."""
    if not isinstance(mask, types.Integer) or one != VECTOR or other != VECTOR:
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        flags = builder.bitcast(builder.trunc(given[0], _BITS), _FLAGS)
        return builder.select(flags, *given[1:])

    return VECTOR(mask, one, other), generate


@_intrinsic
def lane_of(context: Any, vector: types.Type, lane: types.Type) -> Intrinsic:
    """Return the number in one lane."""
    if vector != VECTOR or not isinstance(lane, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        return builder.extract_element(*given)

    return types.float64(vector, lane), generate


@_intrinsic
def first_lane(context: Any, mask: types.Type) -> Intrinsic:
    """Return the first lane of a mask that is not empty."""
    if mask != types.int64:
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        return builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(mask), generate
