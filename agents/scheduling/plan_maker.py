"""Plans made of described groups: layers filled in, microbatches shared, memory checked."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agents.judge.level_fills import layer_times
from agents.judge.paced_splits import paced_fill
from agents.scheduling.kernels.misfits import overflows_of
from agents.scheduling.setting import KnownPlan, Setting
from agents.scheduling.task import Described
from des import Placement, Plan
from des.compiled.many.each import NetworkFigures, as_one_network
from des.compiled.many.paced import CountedPlans, paced_table, paces_of
from des.compiled.many.steady import FITS, Job, Plans
from des.costs.memory import model_state_bytes
from des.costs.outer_state import OUTER_STATE_BYTES

REASONS = ("", "no_domain", "family", "layers", "memory", "trainer")
"""Reasons why an action's plan is not taken, the first none: it names no domain, is of a family not
allowed, has more domains in a pipeline than layers, does not fit into memory, or is none that the
trainer runs."""

_MOST_TOGETHER = 32
"""Described plans that are filled together: tables grow with their square."""


class PlanMaker:
    """Makes plans of one job on networks that stand still."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._workload = setting, setting.workload
        self._paces = paces_of(setting.space.schedules)
        self._most_stages = min(setting.num_domains, setting.workload.num_layers)

    def made(
        self, networks: NetworkFigures, described: Sequence[Described]
    ) -> list[KnownPlan | int]:
        """Make described plans, each for a network; or say why not, by number in `REASONS`."""
        found: list[KnownPlan | int] = [self._refused(one) for one in described]
        for has_outer in (False, True):
            rows = [
                row
                for row, one in enumerate(described)
                if found[row] == 0 and self._has_outer(one) == has_outer
            ]
            for begin in range(0, len(rows), _MOST_TOGETHER):
                part = rows[begin : begin + _MOST_TOGETHER]
                own = networks.rows(np.array(part))
                plans = self._fill(own, [described[row] for row in part], has_outer=has_outer)
                for row, plan in zip(part, plans, strict=True):
                    found[row] = plan
        return found

    def _has_outer(self, one: Described) -> bool:
        return len(one.groups) > 1 and self._setting.modes[one.mode].steps_between > 1

    def _refused(self, one: Described) -> int:
        """Number of the reason why a plan is not worth a look."""
        if not one.groups:
            return REASONS.index("no_domain")
        if max(map(len, one.groups)) > self._workload.num_layers:
            return REASONS.index("layers")
        mode, is_single = self._setting.modes[one.mode], max(map(len, one.groups)) == 1
        if len(one.groups) == 1:
            family = "single" if is_single else "pipeline"
        elif mode.steps_between > 1:
            family = "streaming_diloco" if mode.overlap_steps else "diloco"
        else:
            family = "replicas" if is_single else "hybrid"
        return 0 if family in self._setting.space.families else REASONS.index("family")

    def _fill(
        self, networks: NetworkFigures, described: Sequence[Described], *, has_outer: bool
    ) -> list[KnownPlan | int]:
        """Fill the pipelines of plans that have, or have not, an outer optimiser's state."""
        job = self._job(networks, OUTER_STATE_BYTES if has_outer else 0)
        tilted = networks.rate_flops_per_s * np.array([one.tilts for one in described])
        shares = [
            whole_shares(_shares(rates, one.groups, total), total)
            for total in [self._workload.num_microbatches]
            for rates, one in zip(tilted.tolist(), described, strict=True)
        ]
        counts = np.array([share for own in shares for share in own], dtype=np.int64)
        rows = self._rows(described)
        times = layer_times(job._replace(rate_flops_per_s=tilted.ravel()))
        ends = np.empty(self._most_stages, dtype=np.int32)
        batch = CountedPlans(job, self._paces, rows, counts)
        paced_fill(batch, times, 1, ends)
        overflow = np.empty(len(counts))
        overflows_of(batch, overflow)
        found: list[KnownPlan | int] = []
        begin = 0
        for one, own in zip(described, shares, strict=True):
            end = begin + len(own)
            if (overflow[begin:end] == FITS).all():
                ends = rows.end_layer[begin:end]
                found.append(self._setting.book.of(self._plan(one, own, ends)))
            else:
                found.append(REASONS.index("memory"))
            begin = end
        return found

    def _rows(self, described: Sequence[Described]) -> Plans:
        """Pipelines of plans, the domains of plan ``n`` from ``n K`` on, without their layers."""
        groups = [group for one in described for group in one.groups]
        first = np.repeat(np.arange(len(described)), [len(one.groups) for one in described])
        rows = paced_table(len(groups), self._most_stages)
        rows.num_stages[:] = [len(group) for group in groups]
        rows.schedule[:] = np.array([one.schedule for one in described])[first]
        is_stage = np.arange(self._most_stages) < rows.num_stages[:, np.newaxis]
        rows.domain[is_stage] = [domain for group in groups for domain in group]
        rows.domain[:] += (self._setting.num_domains * first[:, np.newaxis]).astype(np.int32)
        return rows

    def _job(self, networks: NetworkFigures, extra_state_bytes: float) -> Job:
        figures, goodput, latency_s = as_one_network(self._setting.common, networks)
        wire_s = np.full_like(goodput, np.inf)
        np.divide(self._workload.message_bytes, goodput, out=wire_s, where=goodput > 0.0)
        state_bytes = model_state_bytes(self._workload, 1.0, None)
        return Job(
            num_microbatches=self._workload.num_microbatches,
            sums_before=figures.sums_before,
            work_before=figures.work_before,
            rate_flops_per_s=figures.rate_flops_per_s,
            wire_s=wire_s,
            latency_s=latency_s,
            turn_s=wire_s,
            overhead_s=float(self._setting.corrections.message_overhead_s),
            capacity_bytes=figures.capacity_bytes,
            bytes_per_parameter=state_bytes + extra_state_bytes,
            update_s=figures.update_s,
        )

    def _plan(self, one: Described, shares: tuple[int, ...], ends: np.ndarray) -> Plan:
        first, *others = [
            Placement.contiguous(group, np.diff(own[: len(group)], prepend=0).tolist())
            for group, own in zip(one.groups, ends, strict=True)
        ]
        plan = Plan(placement=first, schedule=self._setting.space.schedules[one.schedule])
        if not others:
            return plan
        return replace(
            plan,
            replicas=tuple(others),
            shares=shares,
            synchronisation=self._setting.modes[one.mode],
        )


def _shares(
    rates: Sequence[float], groups: Sequence[Sequence[int]], total: int
) -> tuple[float, ...]:
    """Microbatches of groups by their speed, not rounded."""
    own = [sum(rates[domain] for domain in group) for group in groups]
    return tuple(total * each / sum(own) for each in own)


def whole_shares(shares: Sequence[float], total: int) -> tuple[int, ...]:
    """Round shares to whole numbers of at least 1 that add up to a total.

    Examples
    --------
    >>> whole_shares((3.6, 2.8, 1.6), 8), whole_shares((7.9, 0.1), 8)
    ((4, 3, 1), (7, 1))
    """
    counts = [max(1, int(share)) for share in shares]
    while sum(counts) != total:
        gap = total - sum(counts)
        rest = [share - count for share, count in zip(shares, counts, strict=True)]
        if gap > 0:
            counts[rest.index(max(rest))] += 1
        else:
            able = [place for place, count in enumerate(counts) if count > 1]
            counts[min(able, key=lambda place: rest[place])] -= 1
    return tuple(counts)
