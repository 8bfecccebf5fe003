"""Pipelines of real PyTorch over emulated links: rows of a file, and what the simulator predicts.

The world of a row is what its links and passes are said to be; nothing is fitted to a row.
"""

import re
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field, RootModel

from des import Link, Operation, Topology, Transport
from des.engine.iteration import run_alone
from des.plan.corrections import NO_CORRECTIONS
from des.program.stage_lowering import lower_stages
from des.schedules import Order, Orders, Pass
from des.schedules.flush import gpipe, one_f_one_b
from des.schedules.interleaved import interleaved_1f1b
from des.schedules.zero_bubble import zb_h1
from des.world.hosts import hosts_named
from des.world.runtime import runtime_named
from scenarios.reproduce.cases import CaseForm, CasePart, Count, NonNegativeNumber, PositiveNumber
from scenarios.reproduce.unit_world import unit_domain


def torch_zbv(num_ranks: int, num_microbatches: int) -> Orders:
    """Zero bubble in a V as torch has it: each rank holds a stage on the way down and one back.

    References
    ----------
    .. [1] PyTorch 2.13, torch/distributed/pipelining/schedules.py, ``ScheduleZBVZeroBubble``.

    Examples
    --------
    >>> print(*map(str, torch_zbv(1, 1)[0]), sep=", ")
    F0 of stage 0, F0 of stage 1, D0 of stage 1, W0 of stage 1, D0 of stage 0, W0 of stage 0
    """
    return tuple(_order(rank, num_ranks, num_microbatches) for rank in range(num_ranks))


def _order(rank: int, num_ranks: int, num_microbatches: int) -> Order:
    most = max(2 * num_ranks - 1, num_microbatches)  # those that fill it; the rest is left out
    stages = rank, 2 * num_ranks - 1 - rank
    found: list[Operation] = []
    done = {(kind, stage): 0 for kind in "FDW" for stage in stages}

    def do(kinds: str, stage: int) -> None:
        for kind in kinds:
            passes: Pass = "F" if kind == "F" else "D" if kind == "D" else "W"
            if done[kind, stage] < num_microbatches:
                found.append(Operation(passes, done[kind, stage], stage))
            done[kind, stage] += 1

    down, back = stages
    for _ in range(2 * (num_ranks - rank) - 1):
        do("F", down)
    for _ in range(rank):
        do("F", back)
        do("F", down)
    for _ in range(num_ranks - rank):
        do("FDW", back)
    while done["F", back] < done["F", down] or done["F", down] < most:
        if done["F", down] < most:
            do("F", down)
        do("DW", down)
        do("FDW", back)
    for _ in range(rank):
        do("D", down)
        do("D", back)
    for _ in range(num_ranks - rank):
        do("DW", down)
    for stage in (back, down):
        while done["W", stage] < done["D", stage]:
            do("W", stage)
    return tuple(found)


PAYLOAD_SHARE = 1448.0 / 1500.0
"""Payload of a packet of 1,500 bytes: TCP/IP headers with timestamps take the rest."""

RELAY_LATENCY_S = 0.125e-3
"""Latency that the relay of the emulated links adds to each direction. [s]"""

PASS_OVERHEAD_S = 2.5e-3
"""Time of a pass of torch over its slept time, at most. [s]"""

SETTINGS = {
    "stock_tuned": ("torch_stock", "linux_tuned"),
    "stock_default": ("torch_stock", "linux_default"),
    "early_tuned": ("torch_early", "linux_tuned"),
    "early_default": ("torch_early", "linux_default"),
}
"""Runtime and hosts by the key of a measurement."""

_KINDS: dict[str, Pass] = {"F": "F", "B": "B", "I": "D", "W": "W"}
_PASS = re.compile(r"(\d+)([FBIW])(\d+)")


class MeasuredStep(CasePart):
    """Times of a step; what is not the median describes."""

    median_s: PositiveNumber


class RowLink(CaseForm):
    """Both directions of a link between two ranks."""

    ranks: tuple[int, int]
    bits_per_s: PositiveNumber
    one_way_latency_s: NonNegativeNumber


class RealRunRow(CaseForm):
    """One pipeline, its links, orders with all receives posted first, and what was measured."""

    name: str
    schedule: Literal["1f1b", "gpipe", "interleaved_1f1b", "zb", "zbv"]
    stages_of_rank: Annotated[tuple[tuple[int, ...], ...], Field(min_length=2)]
    microbatches: Count
    forward_s: tuple[NonNegativeNumber, ...]
    input_gradient_s: tuple[NonNegativeNumber, ...]
    weight_gradient_s: tuple[NonNegativeNumber, ...]
    message_bytes: PositiveNumber
    links: tuple[RowLink, ...]
    early_orders: tuple[tuple[str, ...], ...]
    measured: dict[str, MeasuredStep]

    @property
    def rank_of_stage(self) -> tuple[int, ...]:
        """Rank of each stage of the stock schedule."""
        ranks = {stage: rank for rank, own in enumerate(self.stages_of_rank) for stage in own}
        if sorted(ranks) != list(range(len(self.forward_s))):
            raise ValueError(
                f"{self.name}: stages_of_rank must name each of {len(self.forward_s)} stages once, "
                f"got {self.stages_of_rank}"
            )
        return tuple(ranks[stage] for stage in range(len(ranks)))

    def orders(self, runtime: str) -> tuple[Orders, tuple[tuple[int, ...], ...]]:
        """Orders under a runtime, and the stages of the file that each of theirs holds.

        Early orders have stages of one rank that follow each other as one.
        """
        alone = tuple((stage,) for stage in range(len(self.forward_s)))
        if runtime != "torch_early":
            return self._stock_orders(), alone
        orders = tuple(tuple(map(self._operation, order)) for order in self.early_orders)
        num_stages = 1 + max(one.stage for order in orders for one in order)
        if num_stages == len(alone):
            return orders, alone
        ranks = self.rank_of_stage
        return orders, tuple(tuple(own) for _, own in groupby(range(len(ranks)), ranks.__getitem__))

    def _operation(self, text: str) -> Operation:
        found = _PASS.fullmatch(text)
        if found is None:
            raise ValueError(
                f"{self.name}: early_orders must have passes such as 0F3 of F, B, I and W, "
                f"got {text!r}"
            )
        return Operation(_KINDS[found[2]], int(found[3]), int(found[1]))

    def _stock_orders(self) -> Orders:
        num_ranks, num_microbatches = len(self.stages_of_rank), self.microbatches
        num_chunks = len(self.forward_s) // num_ranks
        makers = {
            "gpipe": lambda: gpipe(num_ranks, num_microbatches),
            "1f1b": lambda: one_f_one_b(num_ranks, num_microbatches),
            "interleaved_1f1b": lambda: interleaved_1f1b(num_ranks, num_chunks, num_microbatches),
            "zb": lambda: zb_h1(num_ranks, num_microbatches),
            "zbv": lambda: torch_zbv(num_ranks, num_microbatches),
        }
        return makers[self.schedule]()

    def durations_s(self, held: tuple[int, ...], order: Order) -> tuple[float, ...]:
        """Times of F, B, D and W of a stage that holds some of the file. [s]

        Torch's first stage does nothing at D, as it has no input that needs a gradient, and both at
        W.
        """
        forward_s, input_s, weight_s = (
            sum(times[stage] for stage in held)
            for times in (self.forward_s, self.input_gradient_s, self.weight_gradient_s)
        )
        whole_s = input_s + weight_s + PASS_OVERHEAD_S
        is_halved = any(one.kind == "D" for one in order)
        halves_s = (0.0, whole_s) if 0 in held and is_halved else (input_s, weight_s)
        if halves_s[0] > 0.0:
            halves_s = halves_s[0] + PASS_OVERHEAD_S, halves_s[1] + PASS_OVERHEAD_S
        return (forward_s + PASS_OVERHEAD_S, whole_s, *halves_s)

    def world(self, runtime: str, hosts: str) -> Topology:
        """Ranks as domains, whose links have the relay's latency and room for headers."""
        links = [
            Link(
                source=str(source),
                target=str(target),
                bandwidth_bytes_per_s=PAYLOAD_SHARE * link.bits_per_s / 8.0,
                latency_s=link.one_way_latency_s + RELAY_LATENCY_S,
            )
            for link in self.links
            for source, target in (link.ranks, link.ranks[::-1])
        ]
        transport = Transport(runtime=runtime_named(runtime), hosts=hosts_named(hosts))
        domains = [unit_domain(str(rank)) for rank in range(len(self.stages_of_rank))]
        return Topology.of(domains, links, transport=transport)

    def predicted_s(self, key: str) -> float:
        """Time of a step under the runtime and hosts of a measurement. [s]"""
        runtime, hosts = SETTINGS[key]
        orders, held_of = self.orders(runtime)
        ranks, topology = self.rank_of_stage, self.world(runtime, hosts)
        program = lower_stages(
            topology,
            orders,
            [ranks[held[0]] for held in held_of],
            [self.durations_s(held, orders[ranks[held[0]]]) for held in held_of],
            self.message_bytes,
        )
        return run_alone(topology, program, NO_CORRECTIONS).ended_s


class RealRunRows(RootModel[tuple[RealRunRow, ...]]):
    """A whole file."""
