"""Ways of a trainer to synchronise seldom that a search tries."""

from dataclasses import replace

from agents.decision.token_prices import PUBLISHED_STEPS
from agents.trainers.trainer import Trainer
from des import DecoupledDiLoCo, DiLoCo, StreamingDiLoCo
from des.plan.synchronisation import Synchronisation

_RARE_STEPS = 100
"""Steps between exchanges of most published runs, at no published loss of their own."""

_WHOLE_BITS, _LEAST_BITS = 32.0, 4.0
"""Bits of a value of trainers that have any number."""


def outer_modes(trainer: Trainer) -> tuple[Synchronisation, ...]:
    """Ways of a trainer to synchronise seldom: at published prices, and as seldom as is usual."""
    most = max(trainer.bits, default=_WHOLE_BITS)
    least = min(trainer.bits, default=_LEAST_BITS)
    found: list[Synchronisation] = []
    for steps, bits in ((PUBLISHED_STEPS, most), (_RARE_STEPS, least)):
        if "diloco" in trainer.synchronisations:
            behind = trainer.exchanges_behind_backward
            mode = DiLoCo(steps_between=steps, bits_per_value=bits, behind_backward=behind)
            found.append(mode)
        if "decoupled_diloco" in trainer.synchronisations and steps == _RARE_STEPS:
            free = DecoupledDiLoCo(quorum=1, grace_steps=1.0, overlap_steps=1)
            found.append(replace(free, steps_between=steps, bits_per_value=bits))
        if "streaming_diloco" in trainer.synchronisations:
            found.append(StreamingDiLoCo(steps_between=steps, bits_per_value=bits))
    return tuple(found)
