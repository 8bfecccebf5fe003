"""Plans of any family written down as rows: their pipelines, and kinds of exchanges."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from des.base.jit import kernel
from des.compiled.many.exchange_scripts import Script, exchange_scripts
from des.compiled.many.family_layout import (
    AFTER_PIPELINE,
    AFTER_STEP,
    ALONE,
    BEHIND_BACKWARD,
    ExchangeKinds,
    ExchangeScripts,
    FamilyRows,
)
from des.compiled.many.layout import Flags, Small, Whole
from des.compiled.many.steady import Plans
from des.job.transformer import WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.buckets import bits_on_wire
from des.plan.plan import Plan, split_evenly
from des.plan.synchronisation import fragments_due
from des.schedules import has_pace

_Table = npt.NDArray[np.uint8] | Small

_Kind = tuple[list[bool], float, float, int, float]
"""Fields of `ExchangeKinds` of one kind."""


class WrittenPlans(NamedTuple):
    """Plans that rows can hold: their positions, and all that the rows name by number."""

    positions: Whole
    rows: FamilyRows
    kinds: ExchangeKinds
    scripts: ExchangeScripts
    compressions: tuple[float, ...]
    schedules: tuple[str, ...]


class _Draft:
    """Columns filled plan by plan; equal values share one number.

    ``positions``, ``owners`` and ``exchange`` are of every step of a plan; ``counts``, ``script``,
    ``message`` and ``schedule`` of each plan; ``layers`` and ``shares`` of its pipelines.
    """

    def __init__(self, workload: Workload, *, is_behind: bool) -> None:
        self._workload, self._is_behind = workload, is_behind
        self.positions: list[int] = []
        self.owners: list[int] = []
        self.exchange: list[int] = []
        self.counts: list[int] = []
        self.script: list[int] = []
        self.message: list[int] = []
        self.schedule: list[int] = []
        self.layers: list[tuple[int, ...]] = []
        self.shares: list[int] = []
        self.kinds: list[_Kind] = []
        self.compressions: dict[float, int] = {}
        self.schedules: dict[str, int] = {}
        self._paced: dict[str, bool] = {}
        self._even: dict[int, tuple[int, ...]] = {}
        self.scripts: dict[Script, int] = {}
        self._kind_of: dict[tuple[int, float | None, bool, bool, int], int] = {}
        self._last: Plan | None = None
        self._is_held = False

    def add(self, position: int, plan: Plan, step: int) -> None:
        """Write a plan down if rows can hold it: no shared GPUs or domains, a schedule with a pace.

        Steps of one plan follow each other; columns independent of the step are written once.
        """
        if plan is not self._last:
            self._last, self._is_held = plan, self._write(plan)
        if self._is_held:
            self.positions.append(position)
            self.owners.append(len(self.counts) - 1)
            self.exchange.append(self._kind(plan, step))

    def _write(self, plan: Plan) -> bool:
        """Write the columns independent of the step; return whether rows can hold the plan."""
        name, count = plan.schedule, 1 + len(plan.replicas)
        if name not in self._paced:
            self._paced[name] = has_pace(name)
        if plan.parallelism or plan.shares_domains or not self._paced[name]:
            return False
        layers = [one.domain_of_layer for one in plan.placements]
        shares = plan.shares or self._split(count)
        num_layers = self._workload.num_layers
        if min(shares) < 1 or sum(shares) != self._workload.num_microbatches:
            return False
        if any(len(one) != num_layers for one in layers):
            return False
        self.counts.append(count)
        self.layers += layers
        self.shares += shares
        self.schedule.append(self.schedules.setdefault(name, len(self.schedules)))
        scripts = self.scripts
        script = (plan.exchange.tree, count, plan.exchange.sharded)
        self.script.append(scripts.setdefault(script, len(scripts)))
        compressions = self.compressions
        self.message.append(compressions.setdefault(plan.activation_compression, len(compressions)))
        return True

    def _split(self, count: int) -> tuple[int, ...]:
        if count not in self._even:
            self._even[count] = split_evenly(self._workload.num_microbatches, count)
        return self._even[count]

    def _kind(self, plan: Plan, step: int) -> int:
        """Number of a kind of exchange; modes are compared by identity, plans keep them alive."""
        how = plan.exchange
        key = (id(plan.synchronisation), how.bucket_bytes, how.overlapped, how.sharded, step)
        if key not in self._kind_of:
            self._kind_of[key] = len(self.kinds)
            self.kinds.append(self._make_kind(plan, step))
        return self._kind_of[key]

    def _make_kind(self, plan: Plan, step: int) -> _Kind:
        mode, limit = plan.synchronisation, plan.exchange.bucket_bytes
        due = [False] * self._workload.num_layers
        if self._is_behind == (mode.overlap_steps > 0):
            for fragment in fragments_due(mode, step, len(due)):
                for layer in fragment.layers:
                    due[layer] = True
        start = BEHIND_BACKWARD if plan.exchange.overlapped else AFTER_PIPELINE
        if self._is_behind:
            start = ALONE
        elif not mode.behind_backward and any(due):
            start = AFTER_STEP
        bits = bits_on_wire(self._workload, mode)
        gathered = 8.0 * WEIGHT_BYTES if plan.exchange.sharded else 0.0
        return due, bits, np.inf if limit is None else limit, start, gathered

    def exchange_kinds(self) -> ExchangeKinds:
        """All kinds of exchanges, as kernels read them."""
        due, bits, limits, starts, gathered = zip(*self.kinds, strict=True)
        return ExchangeKinds(
            is_due=np.array(due, dtype=np.bool_),
            bits_per_value=np.array(bits, dtype=np.float64),
            most_bytes=np.array(limits, dtype=np.float64),
            start=np.array(starts, dtype=np.int64),
            gathered_bits=np.array(gathered, dtype=np.float64),
        )


def write_plans(
    workload: Workload,
    num_domains: int,
    plans: Sequence[Plan],
    steps: Sequence[int],
    *,
    is_behind: bool = False,
) -> WrittenPlans | None:
    """Write down the plans that rows can hold, None where there are none.

    Rows hold pipelines of one stage per domain on domains of their own, whose GPUs work as one
    device, under schedules with a pace.

    Parameters
    ----------
    steps
        Step of each plan, from 0, on which it depends what is exchanged.
    is_behind
        Whether the exchanges are written that continue during the next steps, in place of those
        that the step waits for.
    """
    draft = _Draft(workload, is_behind=is_behind)
    for position, (plan, step) in enumerate(zip(plans, steps, strict=True)):
        draft.add(position, plan, step)
    if not draft.positions:
        return None
    most_stages = min(num_domains, workload.num_layers)
    table = _table(draft.layers)
    num_stages = np.zeros(len(table), dtype=np.int32)
    domain, end_layer = np.zeros((2, len(table), most_stages), dtype=np.int32)
    _write_runs(table, num_domains, np.zeros(num_domains, np.int64), num_stages, domain, end_layer)
    schedules = np.repeat(np.array(draft.schedule, dtype=np.int32), draft.counts)
    owners = np.array(draft.owners)
    counts = np.array(draft.counts)[owners]
    first = np.concatenate([[0], np.cumsum(counts)])
    pipelines, shares = Plans(num_stages, schedules, domain, end_layer), np.array(draft.shares)
    if len(owners) > len(draft.counts):  # several steps of one plan
        begins = np.cumsum([0, *draft.counts[:-1]])[owners]
        rows = np.repeat(begins - first[:-1], counts) + np.arange(first[-1])
        pipelines, shares = Plans(*(field[rows] for field in pipelines)), shares[rows]
    kept = np.minimum.reduceat(pipelines.num_stages, first[:-1]) > 0
    return _keep_plans(
        WrittenPlans(
            positions=np.array(draft.positions),
            rows=FamilyRows(
                first=first,
                exchange=np.array(draft.exchange),
                script=np.array(draft.script)[owners],
                message=np.array(draft.message)[owners],
                pipelines=pipelines,
                shares=shares,
            ),
            kinds=draft.exchange_kinds(),
            scripts=exchange_scripts(tuple(draft.scripts)),
            compressions=tuple(draft.compressions),
            schedules=tuple(draft.schedules),
        ),
        kept,
    )


def _keep_plans(written: WrittenPlans, kept: Flags) -> WrittenPlans | None:
    """Leave out plans whose pipelines come back to a domain, or name one that there is not."""
    if kept.all():
        return written
    if not kept.any():
        return None
    rows = written.rows
    counts = np.diff(rows.first)
    own = np.repeat(kept, counts)
    return written._replace(
        positions=written.positions[kept],
        rows=FamilyRows(
            first=np.cumsum([0, *counts[kept]]),
            exchange=rows.exchange[kept],
            script=rows.script[kept],
            message=rows.message[kept],
            pipelines=Plans(*(field[own] for field in rows.pipelines)),
            shares=rows.shares[own],
        ),
    )


def _table(layers: Sequence[tuple[int, ...]]) -> _Table:
    """Domains of all layers, (Q, L)."""
    try:
        found = np.frombuffer(b"".join(map(bytes, layers)), dtype=np.uint8)
    except ValueError:  # a domain above 255
        return np.array(layers, dtype=np.int32)
    return found.reshape(len(layers), -1)


@kernel
def _write_runs(
    table: _Table,
    num_domains: int,
    seen: Whole,
    num_stages: Small,
    domain: Small,
    end_layer: Small,
) -> None:
    """Write the stages of pipelines; 0 for one that comes back to a domain, or to none there is."""
    for pipeline in range(table.shape[0]):
        count, is_held, before = 0, True, -1
        for layer in range(table.shape[1]):
            here = int(table[pipeline, layer])
            if here != before:
                if here >= num_domains or seen[here] == pipeline + 1:
                    is_held = False
                    break
                seen[here] = pipeline + 1
                domain[pipeline, count] = before = here
                count += 1
            end_layer[pipeline, count - 1] = layer + 1
        num_stages[pipeline] = count if is_held else 0
