"""Local plans by rule, for domains of more GPUs or servers than the local agent decides on.

The rule: of all numbers of GPUs in a tensor group, replicas and devices that fit into memory the
quickest by the costs of `des`, see `agents.hi_ppo.local.alike_gpus`. GPUs are taken in the order of
their numbers; inside servers that are known, and that tensor groups fill, so that the slowest of
these is the quickest that can be.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice

import numpy as np

from agents.hi_ppo.local.alike_gpus import DeviceTimes, alike_times, pipelined_s
from agents.hi_ppo.local.bound_plans import LocalPlan
from agents.hi_ppo.local.case import DomainCase, ServersCase
from agents.hi_ppo.local.option_rows import LocalOption
from agents.hi_ppo.local.options import Options
from des import Parallelism
from des.devices.partitions import best_partition
from des.devices.rings import Real
from des.world.domain_load import IDLE


def times_by_rule(case: DomainCase, options: Options) -> Real:
    """Time of an iteration of options on GPUs that are alike (N,). [s]"""
    alone = replace(case, stages_before=0, stages_behind=0, load=IDLE)
    found, known = options.rows.options, _known_times(alone)
    known |= {option: alike_times(alone, option) for option in found if option not in known}
    return np.array([pipelined_s(case, option, known[option]) for option in found])


@lru_cache(maxsize=64)
def _known_times(_alone: DomainCase) -> dict[LocalOption, DeviceTimes]:
    """Times of options of a case that were asked for before."""
    return {}


def firsts_by_rule(
    case: DomainCase, options: Options, times_s: Real, groups: Sequence[Sequence[int]]
) -> list[LocalPlan]:
    """Return the first option of each group, bound to GPUs in the order of the rule."""
    return [
        LocalPlan(
            option=options.rows.options[row],
            binding=_binding(case, options.rows.options[row].parallelism),
            seconds_per_sequence=float(times_s[row]) / case.job.num_sequences,
        )
        for row, *_ in groups
    ]


def _binding(case: DomainCase, shape: Parallelism) -> tuple[int, ...]:
    """GPUs of the places of a shape: server by server, the best tensor groups of each in a row."""
    size = case.server.num_gpus if isinstance(case, ServersCase) else 1
    order: tuple[int, ...] = (0,)
    if isinstance(case, ServersCase):
        tensor = shape.tensor if size % shape.tensor == 0 else 1
        order = tuple(chain.from_iterable(best_partition(case.server, tensor)))
    places = (first + gpu for first in range(0, case.domain.num_gpus, size) for gpu in order)
    return tuple(islice(places, shape.num_gpus))
