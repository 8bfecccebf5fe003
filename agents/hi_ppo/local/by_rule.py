"""Local plans by rule, for domains of more GPUs or servers than the local agent decides on.

The rule: of all numbers of GPUs in a tensor group, replicas and devices that fit into memory the
quickest by the costs of `des`, see `agents.hi_ppo.local.alike_gpus`. GPUs are taken in the order of
their numbers; inside servers that are known, and that tensor groups fill, so that the slowest of
these is the quickest that can be.
"""

import time
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice

import numpy as np

from agents.hi_ppo.local.alike_gpus import (
    DeviceTimes,
    alike_times,
    device_figures,
    pipelined_s,
)
from agents.hi_ppo.local.case import RECOMPUTATIONS, DomainCase, ServersCase
from agents.hi_ppo.local.decide import LocalDecision, SharedSetting
from agents.hi_ppo.local.option_rows import LocalOption, shapes_over
from agents.hi_ppo.local.options import held_microbatches
from des import InfeasiblePlacementError, Parallelism
from des.costs.memory import bytes_per_parameter
from des.devices.partitions import best_partition
from des.world.domain_load import IDLE


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
            start_s = time.perf_counter()
            options, fraction = _by_devices(case, setting)
            least = min(least, fraction)
            if options:
                best = min(options.values(), key=lambda one: one[0])[1]
                found[setting] = _decision(case, best, start_s)
    if not found:
        raise InfeasiblePlacementError(
            f"domain {case.domain.name}: local plan must fit into {case.room_bytes / 1e9:.1f} GB "
            f"a GPU for {case.num_layers} layers, got {least:.2f} times as much at least"
        )
    return dict(sorted(found.items()))


def menu_by_rule(case: DomainCase, setting: SharedSetting) -> tuple[LocalDecision, ...]:
    """Return the quickest plan of one setting for each number of devices in a row.

    Raises
    ------
    InfeasiblePlacementError
        If none of that setting fits.
    """
    start_s = time.perf_counter()
    options, fraction = _by_devices(case, setting)
    if not options:
        raise InfeasiblePlacementError(
            f"domain {case.domain.name}: no local plan with {setting} fits for {case.num_layers} "
            f"layers, got {fraction:.2f} times the memory at least"
        )
    return tuple(_decision(case, options[count][1], start_s) for count in sorted(options))


def _by_devices(
    case: DomainCase, setting: SharedSetting
) -> tuple[dict[int, tuple[float, LocalOption]], float]:
    """Return time and plan of the quickest that fits for each number of devices in a row, and the
    least memory fraction.
    """
    found: dict[int, tuple[float, LocalOption]] = {}
    least = np.inf
    alone = replace(case, stages_before=0, stages_behind=0, load=IDLE)
    for option, times in _timed(alone, setting):
        shape = option.parallelism
        fraction = _memory_fraction(case, setting, shape)
        least = min(least, fraction)
        if fraction > 1.0:
            continue
        found_s = pipelined_s(case, option, times)
        if shape.pipeline not in found or found_s < found[shape.pipeline][0]:
            found[shape.pipeline] = found_s, option
    return found, float(least)


@lru_cache(maxsize=256)
def _timed(case: DomainCase, setting: SharedSetting) -> tuple[tuple[LocalOption, DeviceTimes], ...]:
    """Return all plans of one setting with their times, whatever memory they need."""
    size, recomputation = setting.microbatch_size, setting.recomputation
    options = (
        LocalOption(parallelism=shape, microbatch_size=size, recomputation=recomputation)
        for shape in shapes_of(case, size)
    )
    return tuple((option, alike_times(case, option)) for option in options)


def _decision(case: DomainCase, option: LocalOption, start_s: float) -> LocalDecision:
    iteration_s = pipelined_s(case, option, alike_times(case, option))
    return LocalDecision(
        parallelism=option.parallelism,
        microbatch_size=option.microbatch_size,
        recomputation=option.recomputation,
        binding=_binding(case, option.parallelism),
        seconds_per_sequence=iteration_s / case.job.num_sequences,
        response_s=time.perf_counter() - start_s,
        is_by_rule=True,
    )


def shapes_of(case: DomainCase, microbatch_size: int) -> tuple[Parallelism, ...]:
    """Ways to share a domain's layers, see `agents.hi_ppo.local.options.shapes_over`."""
    domain = case.domain
    return shapes_over(domain.num_gpus, case.num_layers, microbatch_size, domain.nodes)


def _binding(case: DomainCase, shape: Parallelism) -> tuple[int, ...]:
    """GPUs of the places of a shape: server by server, the best tensor groups of each in a row."""
    size = case.server.num_gpus if isinstance(case, ServersCase) else 1
    order: tuple[int, ...] = (0,)
    if isinstance(case, ServersCase):
        tensor = shape.tensor if size % shape.tensor == 0 else 1
        order = tuple(chain.from_iterable(best_partition(case.server, tensor)))
    places = (first + gpu for first in range(0, case.domain.num_gpus, size) for gpu in order)
    return tuple(islice(places, shape.num_gpus))


def _memory_fraction(case: DomainCase, setting: SharedSetting, shape: Parallelism) -> float:
    """Memory of the fullest GPU over its room."""
    kept = setting.microbatch_size, setting.recomputation
    _, figures = device_figures(case, kept, shape.pipeline)
    num_microbatches = case.job.num_sequences // setting.microbatch_size
    num_held = held_microbatches(
        case, np.array([shape.pipeline]), np.array([num_microbatches]), shape.pipeline
    )[0]
    needed = float(sum(bytes_per_parameter(shape))) * figures[:, 2] + num_held * figures[:, 3]
    return float(needed.max() / (case.room_bytes * shape.gpus_per_device))
