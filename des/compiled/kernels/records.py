"""Records one after the other in memory, at little cost.

Compiled code that passes an array passes seven words and counts references to it; a record is one
word, without a count. So kernels share the first record of each array and find the others by
their number.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic


@intrinsic
def _record_at(
    typing_context: Any, first: types.Record, number: types.Integer
) -> tuple[Signature, Callable[..., ir.Value]]:
    num_bytes = first.size

    def generate(context: Any, builder: Any, signature: Signature, given: Any) -> ir.Value:
        here, steps = given
        steps = context.cast(builder, steps, signature.args[1], types.intp)
        offset = builder.mul(steps, ir.Constant(steps.type, num_bytes))
        found = builder.gep(
            builder.bitcast(here, ir.IntType(8).as_pointer()), [offset], inbounds=True
        )
        return builder.bitcast(found, here.type)

    return first(first, number), generate


at = cast(Callable[[Any, int], Any], _record_at)
"""Record of an array by number, given its first one: ``at(a[0], n)`` is ``a[n]``."""


class ProgramRun(NamedTuple):
    """The first records of all arrays of a program and of a state."""

    header: Any
    workers: Any
    operations: Any
    durations_s: Any
    stages: Any
    releases: Any
    flows: Any
    flow_of: Any
    hops: Any
    links: Any
    media: Any
    pieces: Any
    members: Any
    outcome: Any
    events: Any
    worker_states: Any
    device_states: Any
    stage_states: Any
    replica_states: Any
    local_wires: Any
    arrivals: Any
    parcels: Any
    link_states: Any
    medium_states: Any
    member_states: Any
    spans: Any
    transfers: Any
