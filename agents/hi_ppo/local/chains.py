"""Pipelines over domains that share their GPUs, simulated side by side as chains of devices.

Every device is a stage, on which a microbatch takes its passes and the sums in its tensor groups,
half of the backward pass for each kind of gradient where a schedule tells them apart. Between
devices of a domain are the domain's wires, between domains its links. Sums of gradients come behind
the last pass of each device. So local plans of several domains are judged together, where a closed
form would have to guess what hides behind what.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.device_times import DeviceTimes
from des import Corrections, Topology
from des.compiled.many.layout import Real, Whole
from des.compiled.many.paced import CountedPlans, paced_table, paces_of
from des.compiled.many.paced_bound import paced_scores
from des.compiled.many.pipeline_scratch import new_scratch
from des.compiled.many.steady import Job
from des.costs.message_times import quickest_message_s


class DomainBorder(NamedTuple):
    """Times of a message between two domains in a row: forth, then back. [s]"""

    wire_s: tuple[float, float]
    flight_s: tuple[float, float]


def borders_of(
    topology: Topology, domains: Sequence[int], message_bytes: float, corrections: Corrections
) -> tuple[DomainBorder, ...]:
    """Return the borders between the domains of a pipeline, from the input on.

    Raises
    ------
    UnreachableError
        If no links lead over one of them.
    """
    overhead_s, found = corrections.message_overhead_s, []
    for one, other in pairwise(domains):
        ways = [
            quickest_message_s(topology, *ends, message_bytes, corrections)
            for ends in ((one, other), (other, one))
        ]
        forth_s, back_s = (max(0.0, turn_s - overhead_s) for _, turn_s in ways)
        whole_s = [least_s - overhead_s for least_s, _ in ways]
        found.append(DomainBorder((forth_s, back_s), (whole_s[0] - forth_s, whole_s[1] - back_s)))
    return tuple(found)


class Chains:
    """All pipelines that take one of several local plans in each of their domains.

    Parameters
    ----------
    menus
        Times of the local plans of each domain, from the input on.
    borders
        Between the domains, one fewer.
    schedule
        One that has a pace, such as ``1f1b_2x``.
    """

    def __init__(
        self,
        menus: Sequence[Sequence[DeviceTimes]],
        borders: Sequence[DomainBorder],
        *,
        schedule: str,
        num_microbatches: int,
        overhead_s: float = 0.0,
    ) -> None:
        self._devices, count = list[list[Whole]](), 0
        for menu in menus:
            ends = count + np.cumsum([len(one.forward_s) for one in menu])
            starts = [count, *ends[:-1].tolist()]
            self._devices.append([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
            count = int(ends[-1])
        self._most = sum(max(len(one.forward_s) for one in menu) for menu in menus)
        self._paces, self._num_microbatches = paces_of([schedule]), num_microbatches
        self._scratch = new_scratch(self._most, num_microbatches)
        self._job = self._job_of(menus, borders, overhead_s)

    def times_s(self, choices: Sequence[Sequence[int]]) -> Real:
        """Time of an iteration of pipelines, each with a local plan for every domain, (N,). [s]"""
        return self._times_s(choices, math.inf, math.inf)

    def _times_s(self, choices: Sequence[Sequence[int]], slack: float, best_s: float) -> Real:
        """Times; ``inf`` if `des.compiled.many.paced_bound.paced_scores` skips a pipeline. [s]"""
        plans = paced_table(len(choices), self._most)
        for row, choice in enumerate(choices):
            used = [each[index] for each, index in zip(self._devices, choice, strict=True)]
            devices = np.concatenate(used)
            plans.num_stages[row] = len(devices)
            plans.domain[row, : len(devices)] = devices
        plans.end_layer[:] = np.arange(1, self._most + 1)
        counts = np.full(len(choices), self._num_microbatches)
        times_s, overflow = np.empty((2, len(choices)))
        batch = CountedPlans(self._job, self._paces, plans, counts)
        paced_scores(batch, self._scratch, slack, best_s, times_s, overflow)
        return times_s

    def quickest(self, first: Sequence[int]) -> tuple[tuple[int, ...], float]:
        """Change the plan of one domain at a time for the better, as long as that helps.

        Returns the plan of each domain and the time of an iteration; of equals the first is kept.
        """
        best, best_s = tuple(first), float(self.times_s([first])[0])
        unchanged = place = 0
        while unchanged < len(self._devices):
            trials = [
                (*best[:place], index, *best[place + 1 :])
                for index in range(len(self._devices[place]))
                if index != best[place]
            ]
            times_s = self._times_s(trials, 1.0, best_s) if trials else np.array([math.inf])
            least = int(times_s.argmin())
            unchanged += 1
            if times_s[least] < best_s:
                best, best_s, unchanged = trials[least], float(times_s[least]), 1
            place = (place + 1) % len(self._devices)
        return best, best_s

    def _job_of(
        self,
        menus: Sequence[Sequence[DeviceTimes]],
        borders: Sequence[DomainBorder],
        overhead_s: float,
    ) -> Job:
        """Devices as domains of a job, each of whose layers takes what the device takes."""
        num = self._devices[-1][-1][-1] + 1
        passes_s, wire_s = np.zeros((num, 4)), np.zeros((num, num))
        flight_s, update_s = np.zeros((num, num)), np.zeros((num, 2))
        for menu, own in zip(menus, self._devices, strict=True):
            for times, devices in zip(menu, own, strict=True):
                passes_s[devices, 0], passes_s[devices, 1] = times.forward_s, times.backward_s
                passes_s[devices, 2:] = times.backward_s[:, np.newaxis] / 2
                update_s[devices, 1] = times.gradients_s
                one, other = devices[:-1], devices[1:]
                for here, there in ((one, other), (other, one)):
                    wire_s[here, there] = times.transfer_s
                    flight_s[here, there] = times.latency_s
        for border, (before, behind) in zip(borders, pairwise(self._devices), strict=True):
            last = np.array([devices[-1] for devices in before])
            first = np.array([devices[0] for devices in behind])
            for way, ends in enumerate((np.ix_(last, first), np.ix_(first, last))):
                wire_s[ends], flight_s[ends] = border.wire_s[way], border.flight_s[way]
        return Job(
            num_microbatches=self._num_microbatches,
            sums_before=np.zeros((self._most + 1, 7)),
            work_before=np.arange(self._most + 1.0)[:, np.newaxis] * passes_s.ravel(),
            rate_flops_per_s=np.ones(num),
            wire_s=wire_s,
            latency_s=flight_s,
            turn_s=wire_s + overhead_s,
            overhead_s=overhead_s,
            capacity_bytes=np.full(num, math.inf),
            bytes_per_parameter=0.0,
            update_s=update_s,
        )
