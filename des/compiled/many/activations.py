"""Peak of the activations of a stage, in compiled code: the twin of `des.costs.memory`."""

from des.base.arithmetic import held_bytes
from des.base.jit import inlined
from des.compiled.many.layout import HeldMoments, Real

ACTIVATION, WEIGHT_INPUT, PARAMETERS = 4, 5, 6
"""Columns of ``sums_before`` behind the FLOPs of the passes F, B, D and W."""


@inlined
def peak_held_bytes(
    sums_before: Real, moments: HeldMoments, first: int, begin: int, end: int
) -> float:
    """Most activations of a stage with the layers from ``begin`` to ``end``. [bytes]

    ``first`` is the stage's place in ``moments.start``, ``sums_before`` (L + 1, 7) that of
    `des.compiled.many.layer_sums`.
    """
    whole = sums_before[end, ACTIVATION] - sums_before[begin, ACTIVATION]
    halved = sums_before[end, WEIGHT_INPUT] - sums_before[begin, WEIGHT_INPUT]
    peak = 0.0
    for moment in range(moments.start[first], moments.start[first + 1]):
        held = held_bytes(moments.num_whole[moment], moments.num_halved[moment], whole, halved)
        peak = held if held > peak else peak
    return peak
