"""Arrays in compiled code without what is counted about them: where they are, and how large.

A tuple of arrays is handed on field by field, about eight words an array, and every array that is
taken out of it is counted as held, which costs more than reading it. A view is two or three words
and has no reference count: its array must outlive it. Indices are not negative and not checked.
"""

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.extending import intrinsic, lower_builtin, make_attribute_wrapper, register_model

from des.compiled.kernels.vectors import ROWS

_Struct: Any = cgutils.create_struct_proxy  # numba has no types for these
_parts_of: Any = cgutils.unpack_tuple
_types: Any = types
_signature: Any = signature
_typed: Any = infer_global
_lowered: Any = lower_builtin

ZERO = cast(int, np.int64(0))
"""0 where a count begins that is handed on: a plain 0 has a type of its own, for which what it is
handed to would be compiled once more."""

Intrinsic = tuple[Signature, Callable[..., ir.Value]] | None


class _ViewType(types.Type):
    """Numba type of a view; of more than two axes all but the last are one."""

    def __init__(self, dtype: types.Type, num_axes: int) -> None:
        self.dtype, self.num_axes = dtype, num_axes
        super().__init__(f"view of {num_axes} axes of {dtype}")


@register_model(_ViewType)
class _ViewModel(models.StructModel):
    def __init__(self, manager: Any, kind: _ViewType) -> None:
        members = [("first", _types.CPointer(kind.dtype)), ("size", types.intp)]
        if kind.num_axes == 2:
            members.append(("num_columns", types.intp))
        super().__init__(manager, kind, members)  # type: ignore[no-untyped-call]


make_attribute_wrapper(_ViewType, "size", "size")


def _viewed(kind: types.Type) -> Any:
    """Type of what `views_of` makes of a type."""
    if isinstance(kind, types.Array):
        if kind.layout != "C":
            raise TypeError(f"views: arrays must be contiguous, got {kind}")
        return _ViewType(kind.dtype, min(kind.ndim, 2))
    if isinstance(kind, _types.BaseNamedTuple):
        return _types.NamedTuple([_viewed(one) for one in kind.types], kind.instance_class)
    return kind


def _view(context: Any, builder: Any, kind: types.Type, value: ir.Value) -> ir.Value:
    """Write the instructions that make views of a value."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        shape = _parts_of(builder, array.shape)
        view = _Struct(_viewed(kind))(context, builder)
        view.first, view.size = array.data, shape[0]
        if kind.ndim > 1:
            view.num_columns = shape[-1]
        return view._getvalue()
    if isinstance(kind, _types.BaseNamedTuple):
        fields = [
            _view(context, builder, one, builder.extract_value(value, index))
            for index, one in enumerate(kind.types)
        ]
        return context.make_tuple(builder, _viewed(kind), fields)
    return value


def _intrinsic(define: Callable[..., Intrinsic]) -> Any:
    """Let compiled code call what ``define`` gives the types and the instructions of."""
    return intrinsic(define)


@_intrinsic
def views_of(context: Any, value: types.Type) -> Intrinsic:
    """Views of an array, or of all arrays of a named tuple; all else stays as it is."""

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        return _view(context, builder, value, given[0])

    return _viewed(value)(value), generate


@_intrinsic
def rows_of_view(context: Any, view: types.Type) -> Intrinsic:
    """Rows of lanes, see `des.compiled.kernels.vectors.rows_of`, of a view whose last axis are
    the lanes.
    """
    if not isinstance(view, _ViewType) or view.dtype != types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        return _Struct(view)(context, builder, given[0]).first

    return ROWS(view), generate


class _Element(AbstractTemplate):
    """Types of reading and writing an element."""

    def generic(self, args: Any, kws: Any) -> Signature | None:
        view, where, *value = args
        if not isinstance(view, _ViewType):
            return None
        axes = tuple(where) if isinstance(where, _types.BaseTuple) else (where,)
        if len(axes) != view.num_axes or not all(isinstance(one, types.Integer) for one in axes):
            return None
        given = [view, where, *(view.dtype for _ in value)]
        found: Signature = _signature(types.none if value else view.dtype, *given)
        return found


@_typed(operator.getitem)
class _Read(_Element):
    pass


@_typed(operator.setitem)
class _Write(_Element):
    pass


def _address(context: Any, builder: Any, kinds: Any, given: Any) -> ir.Value:
    view = _Struct(kinds[0])(context, builder, given[0])
    axes = tuple(kinds[1]) if isinstance(kinds[1], _types.BaseTuple) else (kinds[1],)
    indices = _parts_of(builder, given[1]) if len(axes) > 1 else [given[1]]
    places = [
        context.cast(builder, index, kind, types.intp)
        for index, kind in zip(indices, axes, strict=True)
    ]
    if len(places) == 1:
        return builder.gep(view.first, places)
    return builder.gep(
        view.first, [builder.add(builder.mul(places[0], view.num_columns), places[1])]
    )


def _read(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
    address = _address(context, builder, signature.args, given)
    return context.unpack_value(builder, signature.return_type, address)


def _write(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
    address = _address(context, builder, signature.args, given)
    context.pack_value(builder, signature.args[2], given[2], address)
    return context.get_dummy_value()


_lowered(operator.getitem, _ViewType, types.Any)(_read)
_lowered(operator.setitem, _ViewType, types.Any, types.Any)(_write)
