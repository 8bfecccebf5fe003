"""Simple rules of placement on one server, compared with the exact choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.devices.fragmentation import EVEN_MIX, fragmentation
from agents.devices.free_gpus import FreeGpus
from agents.devices.goodness import SetScore, numbers_of, places_of, score_of_places
from agents.devices.gpu_placement import PAYLOAD_BYTES, optimal_placement
from agents.devices.greedy_sets import greedy_places
from agents.devices.ring_times import places_all_reduce_s
from des.base.checks import require_count
from des.devices.gpus import MOST_GPUS
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """Figures of the GPUs that a rule takes, or means of them over draws.

    ``gpus`` is None for means; ``all_reduce_s`` where rings of as many GPUs are not computed.
    """

    rule: str
    gpus: tuple[int, ...] | None
    nvlinks: float
    distances: float
    all_reduce_s: float | None
    fragmentation_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesCase:
    """A job on one server, and what its placement is measured by."""

    server: Server
    num_gpus: int
    free: Sequence[int] | None = None
    mix: Mapping[int, float] = field(default_factory=lambda: EVEN_MIX)
    payload_bytes: float = PAYLOAD_BYTES

    def outcome(self, rule: str, places: Sequence[int]) -> RuleOutcome:
        """Measure the GPUs at some places."""
        free = places_of(self.server, "free", self.free)
        score: SetScore = score_of_places(self.server, places, free)
        left = numbers_of(self.server, [place for place in free if place not in set(places)])
        after = FreeGpus(name=self.server.name, server=self.server, numbers=left)
        time_s = None
        if len(places) <= MOST_GPUS:
            time_s = places_all_reduce_s(self.server, places, self.payload_bytes)
        return RuleOutcome(
            rule=rule,
            gpus=numbers_of(self.server, sorted(places)),
            nvlinks=score.nvlinks,
            distances=score.distances,
            all_reduce_s=time_s,
            fragmentation_fraction=fragmentation([after], self.mix).fraction,
        )


def compare_rules(case: RulesCase, *, seed: int, num_draws: int) -> list[RuleOutcome]:
    """Place a job by each rule: exact, greedy, first fit, and at random.

    ``exact`` has the most NVLinks, ``exact_time`` the least predicted time; both are left out where
    more than 16 GPUs are free. ``first_fit`` takes the first GPUs in the order of the server.
    ``random`` are means over draws.

    Raises
    ------
    ValueError
        As `agents.devices.gpu_placement.optimal_placement`.
    """
    require_count("comparison", "num_draws", num_draws)
    best = optimal_placement(case.server, case.num_gpus, case.free)
    free = places_of(case.server, "free", case.free)
    found = []
    if best.is_exact:
        fastest = optimal_placement(
            case.server, case.num_gpus, case.free, by="time", payload_bytes=case.payload_bytes
        )
        for rule, chosen in (("exact", best), ("exact_time", fastest)):
            found.append(case.outcome(rule, places_of(case.server, "gpus", chosen.gpus)))
    found.append(case.outcome("greedy", greedy_places(case.server, case.num_gpus, free)))
    found.append(case.outcome("first_fit", free[: case.num_gpus]))
    rng = np.random.default_rng(seed)
    drawn = [
        case.outcome("random", rng.permutation(free)[: case.num_gpus].tolist())
        for _ in range(num_draws)
    ]
    return [*found, _mean(drawn)]


def _mean(outcomes: Sequence[RuleOutcome]) -> RuleOutcome:
    times_s = [each.all_reduce_s for each in outcomes if each.all_reduce_s is not None]
    return RuleOutcome(
        rule=outcomes[0].rule,
        gpus=None,
        nvlinks=float(np.mean([each.nvlinks for each in outcomes])),
        distances=float(np.mean([each.distances for each in outcomes])),
        all_reduce_s=float(np.mean(times_s)) if times_s else None,
        fragmentation_fraction=float(np.mean([each.fragmentation_fraction for each in outcomes])),
    )
