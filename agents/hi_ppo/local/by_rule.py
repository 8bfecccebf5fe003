"""Local plans by rule, for domains of more GPUs than the local agent knows one by one.

The rule: tensor groups as large as divide the GPUs, at most 8 of them, on GPUs in the
order of their numbers; the groups form a pipeline. Of the group sizes the largest one that fits
into memory is taken. The inner network is the one figure that the world gives the domain.
"""

import time

import numpy as np

from agents.hi_ppo.local.case import RECOMPUTATIONS, DomainCase, sums_of
from agents.hi_ppo.local.decide import LocalDecision, SharedSetting
from agents.hi_ppo.local.options import LocalOption, held_microbatches
from agents.hi_ppo.local.times import seconds_per_sequence
from des import InfeasiblePlacementError, Parallelism
from des.costs.memory import bytes_per_parameter
from des.devices.gpus import GROUP_SIZES
from des.plan.plan import split_evenly


def alternatives_by_rule(case: DomainCase) -> dict[SharedSetting, LocalDecision]:
    """Decide once for every setting of which a plan fits, the smallest first.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits, naming the domain and by how much the smallest one is too large.
    """
    found: dict[SharedSetting, LocalDecision] = {}
    least = np.inf
    for size in case.job.microbatch_sizes:
        for recomputation in RECOMPUTATIONS:
            setting = SharedSetting(microbatch_size=size, recomputation=recomputation)
            decision, fraction = _decided(case, setting)
            least = min(least, fraction)
            if decision is not None:
                found[setting] = decision
    if not found:
        raise InfeasiblePlacementError(
            f"domain {case.domain.name}: local plan must fit into {case.room_bytes / 1e9:.1f} GB "
            f"a GPU for {case.num_layers} layers, got {least:.2f} times as much at least"
        )
    return dict(sorted(found.items()))


def decide_by_rule(case: DomainCase, setting: SharedSetting) -> LocalDecision:
    """Return the plan of one setting.

    Raises
    ------
    InfeasiblePlacementError
        If none of that setting fits.
    """
    decision, fraction = _decided(case, setting)
    if decision is None:
        raise InfeasiblePlacementError(
            f"domain {case.domain.name}: no local plan with {setting} fits for {case.num_layers} "
            f"layers, got {fraction:.2f} times the memory at least"
        )
    return decision


def _decided(case: DomainCase, setting: SharedSetting) -> tuple[LocalDecision | None, float]:
    """Return the plan of the largest groups that fits, if any, and the least memory fraction."""
    start_s = time.perf_counter()
    num_gpus, least = case.domain.num_gpus, float(np.inf)
    for tensor in sorted(GROUP_SIZES, reverse=True):
        if num_gpus % tensor:
            continue
        shape = Parallelism(tensor=tensor, pipeline=min(num_gpus // tensor, case.num_layers))
        fraction = _memory_fraction(case, setting, shape)
        least = min(least, fraction)
        if fraction > 1.0:
            continue
        option = LocalOption(
            parallelism=shape,
            microbatch_size=setting.microbatch_size,
            recomputation=setting.recomputation,
        )
        binding = tuple(range(shape.num_gpus))
        decision = LocalDecision(
            parallelism=shape,
            microbatch_size=setting.microbatch_size,
            recomputation=setting.recomputation,
            binding=binding,
            seconds_per_sequence=seconds_per_sequence(case, option, binding),
            response_s=time.perf_counter() - start_s,
            is_by_rule=True,
        )
        return decision, least
    return None, least


def _memory_fraction(case: DomainCase, setting: SharedSetting, shape: Parallelism) -> float:
    """Memory of the fullest GPU over its room."""
    sums = sums_of(case.job, setting.microbatch_size, setting.recomputation)
    cuts = case.first_layer + np.cumsum([0, *split_evenly(case.num_layers, shape.pipeline)])
    figures = np.diff(sums[cuts], axis=0)
    num_microbatches = case.job.num_sequences // setting.microbatch_size
    num_held = held_microbatches(
        case, np.array([shape.pipeline]), np.array([num_microbatches]), shape.pipeline
    )[0]
    needed = float(sum(bytes_per_parameter(shape))) * figures[:, 2] + num_held * figures[:, 3]
    return float(needed.max() / (case.room_bytes * shape.gpus_per_device))
