"""Distribution of calibration cases: workloads, regimes, and a policy's plans."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, get_args

from calibration.cases.case import Granularity
from calibration.cases.draws import NUM_LEVELS, Draws, Factor
from des.base.checks import (
    MOST_ITEMS,
    require_count,
    require_non_negative,
    require_one_of,
    require_positive,
)
from des.job.models import architecture_named, build_workload, recomputation_named
from des.job.workload import Workload
from des.plan.plan import Plan
from des.schedules import require_quick

INTERLEAVED = "interleaved_1f1b"
"""The schedule that goes round its domains in one order, at least twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFamily:
    """Workloads and schedules that cases are drawn from.

    ``num_microbatches`` are the least and the most; ``num_layers`` None leaves models their own.
    """

    models: tuple[str, ...] = ("llama2_7b", "llama2_70b")
    num_layers: int | None = None
    num_microbatches: tuple[int, int] = (8, 64)
    microbatch_sizes: tuple[int, ...] = (1, 2, 4)
    sequence_lengths: tuple[int, ...] = (2048, 4096)
    recomputation: str = "flash"
    schedules: tuple[str, ...] = ("gpipe", "1f1b", INTERLEAVED, "zb_h1")

    def __post_init__(self) -> None:
        owner = "workload family"
        for name in ("models", "microbatch_sizes", "sequence_lengths", "schedules"):
            if not getattr(self, name):
                raise ValueError(f"{owner}: {name} must hold at least one, got none")
        for name in ("num_microbatches", "microbatch_sizes", "sequence_lengths"):
            for count in getattr(self, name):
                require_count(owner, name, count, MOST_ITEMS)
        if len(self.num_microbatches) != 2 or self.num_microbatches[0] > self.num_microbatches[1]:
            raise ValueError(
                f"{owner}: num_microbatches must be the least and the most, "
                f"got {self.num_microbatches!r}"
            )
        for schedule in self.schedules:
            require_quick(owner, schedule)
        least = 4 if INTERLEAVED in self.schedules else 2
        for model in self.models:
            num_layers = self.num_layers or architecture_named(model).num_layers
            if num_layers < least:
                raise ValueError(
                    f"{owner}: num_layers must be at least {least}, so that two domains have "
                    f"stages under each schedule, got {num_layers!r}"
                )
        recomputation_named(self.recomputation)

    def workload(self, draws: Draws) -> Workload:
        """Draw one."""
        sizes, lengths = self.microbatch_sizes, self.sequence_lengths
        return build_workload(
            self.models[draws.level(Factor.MODEL, len(self.models))],
            num_layers=self.num_layers,
            num_microbatches=draws.whole(
                Factor.NUM_MICROBATCHES, NUM_LEVELS, self.num_microbatches
            ),
            microbatch_size=sizes[draws.level(Factor.MICROBATCH_SIZE, len(sizes))],
            sequence_length=lengths[draws.level(Factor.SEQUENCE_LENGTH, len(lengths))],
            recomputation=self.recomputation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """Regime of worlds in which predictions are to be accurate.

    Parameters
    ----------
    worlds
        ``given``: epochs of the topology. ``equal``: every two domains are joined by links of the
        same figures, for references that know one link. ``drawn``: every two by a link of their
        own, around which it moves as those of the topology.
    num_domains
        Numbers of domains of worlds that are not given; without any, that of the topology.
    granularity
        One NPU per domain, or one per GPU: then all GPUs of a domain work as tensor times data.
    snapshot_span_s
        Links that move in time are looked at within this time of the start of their epoch. [s]
    """

    worlds: Literal["given", "equal", "drawn"] = "given"
    num_domains: tuple[int, ...] = ()
    granularity: Granularity = "domain"
    snapshot_span_s: float = 3600.0

    def __post_init__(self) -> None:
        if self.worlds not in ("given", "equal", "drawn"):
            raise ValueError(f"regime: worlds must be given, equal or drawn; got {self.worlds!r}")
        if self.worlds == "given" and self.num_domains:
            raise ValueError(
                "regime: num_domains must be left out where the worlds are given, "
                f"got {self.num_domains!r}"
            )
        for count in self.num_domains:
            require_count("regime", "num_domains", count, MOST_ITEMS)
            if count < 2:
                raise ValueError(f"regime: num_domains must be at least 2, got {count!r}")
        require_one_of("regime", "granularity", self.granularity, get_args(Granularity))
        require_non_negative("regime", "snapshot_span_s", self.snapshot_span_s)


REGIMES: Mapping[str, Regime] = {
    "aware": Regime(worlds="equal", num_domains=(3, 5, 10)),
    "pairwise": Regime(worlds="drawn", num_domains=(3, 5, 10)),
    "aware_gpu": Regime(worlds="equal", num_domains=(3, 5, 10), granularity="gpu"),
    "pairwise_gpu": Regime(worlds="drawn", num_domains=(3, 5, 10), granularity="gpu"),
    "unaware": Regime(worlds="equal", num_domains=(3, 5, 10)),
}
"""Regimes that fidelity is stated for, by name."""


@dataclass(frozen=True, kw_only=True)
class PolicyPlans:
    """Plans of the current policy on the domains of the topology, and how often each is chosen.

    They are drawn by their weights, which need not add up to 1.
    """

    workload: Workload
    plans: tuple[Plan, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.plans or len(self.plans) != len(self.weights):
            raise ValueError(
                f"policy plans: weights must hold one for each of the plans, at least one; got "
                f"{len(self.weights)} for {len(self.plans)}"
            )
        for weight in self.weights:
            require_positive("policy plans", "weights", weight)

    def plan_at(self, fraction: float) -> Plan:
        """Return the plan at a fraction of the sum of weights."""
        reached = list(accumulate(self.weights))
        within = (index for index, end in enumerate(reached) if fraction * reached[-1] < end)
        return self.plans[next(within, len(self.plans) - 1)]  # rounded up to the sum
