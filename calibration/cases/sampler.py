"""Cases to calibrate on: stratified over what matters, and over what the policy now does."""

from dataclasses import dataclass, field
from itertools import permutations
from typing import Literal, get_args

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import case_digest
from calibration.cases.draws import NUM_LEVELS, Draws, Factor, draw_placement, draw_walk, generator
from calibration.cases.settings import INTERLEAVED, PolicyPlans, Regime, WorkloadFamily
from calibration.cases.worlds import (
    HIGHEST_BANDWIDTH_BYTES_PER_S,
    HIGHEST_LATENCY_S,
    LOWEST_BANDWIDTH_BYTES_PER_S,
    LOWEST_LATENCY_S,
    join_world,
    moves_in_time,
    snapshot,
)
from des.base.checks import require_count, require_fraction, require_seed
from des.plan.parallelism import Parallelism
from des.plan.plan import Plan
from des.world.domain import Domain
from des.world.topology import Topology

Purpose = Literal["fit", "check"]
"""Purpose of a case. Whatever the seeds, no case for one is ever drawn for the other."""

_MOST_ROUNDS = 4
"""Stages a used domain, at most."""

_STRATIFIED_DRAWS, _MOST_DRAWS = 64, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A case, and whether it was drawn from the strata or is what the policy does."""

    case: PlacementCase
    source: Literal["strata", "policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Cases by position; each depends on nothing but the fields and its position.

    Stratified are the numbers of domains and of those in use, schedules, crossings, the imbalance
    of the split, microbatches, message sizes, and the figures of equal links; see `Draws`. Where a
    policy is given, ``policy_fraction`` of the cases are its plans, on fresh links.

    Cases for ``fit`` and ``check`` have seed streams of their own, and each case there could be
    belongs to one of both by its digest, so they share none whatever the seeds. Where a stratum or
    the policy has no case for the purpose in 64 draws, its place goes to any stratum.
    """

    topology: Topology
    family: WorkloadFamily = field(default_factory=WorkloadFamily)
    regime: Regime = field(default_factory=Regime)
    seed: int = 0
    purpose: Purpose = "fit"
    policy: PolicyPlans | None = None
    policy_fraction: float = 0.5

    def __post_init__(self) -> None:
        require_seed("sampler", "seed", self.seed)
        if self.purpose not in get_args(Purpose):
            raise ValueError(f"sampler: purpose must be fit or check, got {self.purpose!r}")
        require_fraction("sampler", "policy_fraction", self.policy_fraction)
        if self.topology.num_domains < 2:
            raise ValueError(
                f"sampler: topology must have at least 2 domains, got {self.topology.num_domains}"
            )
        if self.regime.worlds == "given":
            for source, target in permutations(range(self.topology.num_domains), 2):
                self.topology.route(source, target)  # a placement may ask for any
        if self.policy is not None:
            for plan in self.policy.plans:
                plan.check_against(self.topology, self.policy.workload)

    def draw(self, position: int) -> Sample:
        """Return the sample at a position, counted from 0.

        Raises
        ------
        ValueError
            If there is none that execution traces can hold, or none for the purpose.
        """
        if position != 0:
            require_count("sampler", "position", position)
        policy_share = self.policy_fraction if self.policy is not None else 0.0
        policy_place = int(position * policy_share)
        is_policy = int((position + 1) * policy_share) > policy_place
        stream = get_args(Purpose).index(self.purpose)
        for attempt in range(_MOST_DRAWS):
            is_free = attempt >= _STRATIFIED_DRAWS
            from_policy = is_policy and not is_free
            draws = Draws(
                seed=self.seed,
                stream=stream,
                rng=generator(self.seed, stream, Factor.OWN, position, attempt),
                place=policy_place if is_policy else position - policy_place,
                is_free=is_free,
            )
            case = self._policy_case(draws) if from_policy else self._stratified_case(draws)
            if case is not None and sampling_purpose(case) == self.purpose:
                return Sample(case=case, source="policy" if from_policy else "strata")
        raise ValueError(
            f"sampler: topology and family must have a case for {self.purpose} at position "
            f"{position}, got none in {_MOST_DRAWS} draws: there are too few different ones, or "
            "too few times at which no link is down"
        )

    def _policy_case(self, draws: Draws) -> PlacementCase | None:
        """One of the policy's plans, on links of the regime between its own domains."""
        assert self.policy is not None
        plan = self.policy.plan_at(draws.between(Factor.POLICY, 0.0, 1.0))
        topology = self._world(draws, self.topology.num_domains)
        if topology is None:
            return None
        return PlacementCase(
            topology=topology,
            workload=self.policy.workload,
            plan=plan,
            granularity=self.regime.granularity,
        )

    def _stratified_case(self, draws: Draws) -> PlacementCase | None:
        counts = self.regime.num_domains or (self.topology.num_domains,)
        num_domains = counts[draws.level(Factor.NUM_DOMAINS, len(counts))]
        topology = self._world(draws, num_domains)
        if topology is None:
            return None
        workload = self.family.workload(draws)
        schedules = self.family.schedules
        schedule = schedules[draws.level(Factor.SCHEDULE, len(schedules))]
        walk = _draw_walk(
            draws,
            num_domains=num_domains,
            num_layers=workload.num_layers,
            place=draws.place // len(counts),  # among the worlds of as many domains
            is_interleaved=schedule == INTERLEAVED,
        )
        imbalance = draws.between(Factor.IMBALANCE, 0.0, 1.0)
        placement = draw_placement(draws.rng, walk, workload.num_layers, imbalance)
        is_split = self.regime.granularity == "gpu"
        parallelism = _draw_parallelism(draws, topology.domains) if is_split else ()
        return PlacementCase(
            topology=topology,
            workload=workload,
            plan=Plan(placement=placement, schedule=schedule, parallelism=parallelism),
            granularity=self.regime.granularity,
        )

    def _world(self, draws: Draws, num_domains: int) -> Topology | None:
        """A steady world of the regime; None if a link of a moving one is down."""
        worlds, model, rng = self.regime.worlds, self.topology, draws.rng
        bandwidths = LOWEST_BANDWIDTH_BYTES_PER_S, HIGHEST_BANDWIDTH_BYTES_PER_S
        latencies_s = LOWEST_LATENCY_S, HIGHEST_LATENCY_S
        if worlds == "equal":
            figures = (
                draws.between(Factor.BANDWIDTH, *bandwidths),
                draws.between(Factor.LATENCY, *latencies_s),
            )
            return join_world(model, num_domains, lambda: figures)
        if worlds == "drawn":
            model = join_world(
                model,
                num_domains,
                lambda: (float(rng.uniform(*bandwidths)), float(rng.uniform(*latencies_s))),
                model.dynamics,
            )
        span_s = self.regime.snapshot_span_s if moves_in_time(model) else 0.0
        return snapshot(model, int(rng.integers(2**63)), float(rng.uniform(0.0, span_s)))


def sample_cases(
    topology: Topology,
    family: WorkloadFamily,
    num: int,
    *,
    seed: int,
    regime: Regime,
    purpose: Purpose = "fit",
    policy: PolicyPlans | None = None,
    policy_fraction: float = 0.5,
) -> list[PlacementCase]:
    """Return the first ``num`` cases of a `Sampler`."""
    require_count("sampler", "num", num)
    sampler = Sampler(
        topology=topology,
        family=family,
        regime=regime,
        seed=seed,
        purpose=purpose,
        policy=policy,
        policy_fraction=policy_fraction,
    )
    return [sampler.draw(position).case for position in range(num)]


def sampling_purpose(case: PlacementCase) -> Purpose:
    """Return what a case may be drawn for: half of all there could be are for either."""
    return "check" if int(case_digest(case)[-1], 16) % 2 else "fit"


def _draw_walk(
    draws: Draws, *, num_domains: int, num_layers: int, place: int, is_interleaved: bool
) -> list[int]:
    """Domains of the stages in order: some of them or all, visited once or more often.

    Under interleaving in up to `_MOST_ROUNDS` equal rounds. Else a quarter of the placements visit
    each domain once; the others have up to as many stages in all, where there are layers for it.
    """
    least_rounds = 2 if is_interleaved else 1
    most_used = min(num_domains, num_layers // least_rounds)
    used_level = draws.level(Factor.NUM_USED_DOMAINS, num_domains - 1, place)
    num_used = draws.within(used_level, num_domains - 1, (2, most_used))
    domains: list[int] = draws.rng.permutation(num_domains)[:num_used].tolist()
    level = draws.level(Factor.NUM_STAGES, NUM_LEVELS)
    if is_interleaved:
        most_rounds = min(_MOST_ROUNDS, num_layers // num_used)
        return domains * draws.within(level, NUM_LEVELS, (2, most_rounds))
    most_stages = min(_MOST_ROUNDS * num_used, num_layers)
    if level == 0 or most_stages == num_used:
        return domains
    bounds = num_used + 1, most_stages
    return draw_walk(draws.rng, domains, draws.within(level - 1, NUM_LEVELS - 1, bounds))


def _draw_parallelism(draws: Draws, domains: tuple[Domain, ...]) -> tuple[Parallelism, ...]:
    """All GPUs of every domain as tensor times data; where domains differ, as many as the least."""
    num_gpus = min(domain.num_gpus for domain in domains)
    tensors = [count for count in range(1, num_gpus + 1) if num_gpus % count == 0]
    tensor = tensors[draws.level(Factor.PARALLELISM, len(tensors))]
    return (Parallelism(tensor=tensor, data=num_gpus // tensor),) * len(domains)
