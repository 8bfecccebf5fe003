"""The placement task: what is decided, observed and rewarded, without the stepping."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from agents.decision.simulator import Backend, Simulator
from agents.flat.measured_epoch import MEASURED_BYTES, MeasuredEpoch, exposed_cycles
from agents.flat.worlds import WorldSource, highest_figures, path_matrices, require_bandwidth
from agents.ppo.actions import ActionCodec, action_codec
from des import (
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    Corrections,
    EpochResult,
    IterationResult,
    Placement,
    Plan,
    Topology,
    UniformLaw,
    Workload,
    lower,
    simulate,
    simulate_epoch,
)
from des.base.checks import MOST_ITEMS, require_count, require_non_negative
from des.compiled.simulate import simulate_compiled
from des.plan.replacement import Replacement
from des.schedules import require_quick
from des.training.epoch import change_of_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardWeights:
    """Weights of time, utilisation and communication cost in the reward."""

    time: float = 0.4
    utilisation: float = 0.3
    communication: float = 0.3

    def __post_init__(self) -> None:
        for field in ("time", "utilisation", "communication"):
            require_non_negative("reward weights", field, getattr(self, field))


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Figures of the uniform plan at base link figures, with which the reward compares.

    The communication cost is in the unit that `PlacementTask.cost_name` names.
    """

    iteration_time_s: float
    communication_cost: float


@dataclass(frozen=True, kw_only=True)
class PlacementTask:
    """Place the layers of a workload on the domains of a world, epoch after epoch.

    Each epoch the links move, the policy sees them and the last placement, and places all layers;
    the epoch holds its links, on which the change of placement and ``iterations_per_epoch`` are
    simulated, see `des.training.epoch.simulate_epoch`. No link may ever be down. Without
    ``replacement`` a placement costs nothing to change, so it does not influence later epochs. With
    it, every change is paid for, that from the even split in the first epoch included, and a
    decision is also one on what the next ones cost. An episode is cut after
    ``epochs_per_episode``: training continues, it does not end.

    ``actions`` are ``"per_layer"``, a domain for each layer, or ``"order_split"``, order and split
    points; see `agents.ppo.actions`. ``simulator``, with ``corrections``, judges the plans and
    answers planners. Where there is a ``backend``, it judges in place of the simulator: iterations
    are measured and not corrected, and communication costs exposed cycles instead of bytes. Changes
    cost what `des` says either way.
    """

    world: WorldSource
    workload: Workload
    schedule: str = DEFAULT_SCHEDULE
    actions: str = "per_layer"
    weights: RewardWeights = RewardWeights()
    epochs_per_episode: int = 32
    iterations_per_epoch: int = 1
    replacement: Replacement | None = None
    simulator: Simulator = simulate
    corrections: Corrections = NO_CORRECTIONS
    backend: Backend | None = None

    def __post_init__(self) -> None:
        require_count("environment", "epochs_per_episode", self.epochs_per_episode)
        require_count("environment", "iterations_per_epoch", self.iterations_per_epoch, MOST_ITEMS)
        require_quick("environment", self.schedule)
        self.corrections.require_no_law("environment")
        require_bandwidth(self.world)
        uniform = self.plan(self.uniform_placement)
        action_codec(self.actions, self.world.num_domains, self.workload.num_layers)
        if self.backend is not None:
            self.backend.prepare(self.world.world(0), self.workload, uniform)

    @cached_property
    def codec(self) -> ActionCodec:
        """Meaning of an action."""
        return action_codec(self.actions, self.world.num_domains, self.workload.num_layers)

    @property
    def observation_size(self) -> int:
        """Length of an observation: two K x K matrices and one share a domain."""
        return 2 * self.world.num_domains**2 + self.world.num_domains

    @cached_property
    def uniform_placement(self) -> Placement:
        """Even split over all domains in order: the baseline, and where an episode starts."""
        return Placement.even(self.world.num_domains, self.workload.num_layers)

    @property
    def cost_name(self) -> str:
        """Name of the communication cost among the metrics, with the unit of its judge."""
        return f"communication_cost_{'bytes' if self.backend is None else 'cycles'}"

    def fingerprint(self) -> str:
        """Return a digest of all that the task is made of; equal tasks have equal ones."""
        simulator = f"{self.simulator.__module__}.{getattr(self.simulator, '__qualname__', '')}"
        parts = (
            self.world,
            self.workload,
            self.schedule,
            self.actions,
            self.weights,
            self.epochs_per_episode,
            self.iterations_per_epoch,
            self.replacement,
            self.corrections,
            simulator,
            self.backend,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def compiled(self) -> Self:
        """The same task on the compiled twin of `des.simulate`; another simulator stays."""
        return replace(self, simulator=simulate_compiled) if self.simulator is simulate else self

    def plan(self, placement: Placement) -> Plan:
        """Complete a placement to a plan."""
        return Plan(placement=placement, schedule=self.schedule)

    def simulate(self, topology: Topology, placement: Placement) -> IterationResult:
        """Simulate one iteration of a placement on the links as they are."""
        return self.simulator(topology, self.workload, self.plan(placement), self.corrections)

    def run_epoch(
        self, topology: Topology, placement: Placement, last_placement: Placement
    ) -> EpochResult | MeasuredEpoch:
        """Judge a placement over an epoch that finds the layers where the last one has put them."""
        costs, plan, workload = (
            self.replacement or Replacement(),
            self.plan(placement),
            self.workload,
        )
        previous = None if self.replacement is None else self.plan(last_placement)
        if self.backend is None:
            return simulate_epoch(
                *(topology, workload, plan),
                num_iterations=self.iterations_per_epoch,
                previous=previous,
                restart_s=costs.restart_s,
                pays_bytes=costs.pays_bytes,
                corrections=self.corrections,
                simulator=self.simulator,
            )
        change_s = num_bytes = 0.0
        if previous is not None:
            change_s, num_bytes = change_of_plan(
                *(topology, workload, previous, plan, self.corrections),
                restart_s=costs.restart_s,
                pays_bytes=costs.pays_bytes,
            )
        return MeasuredEpoch(
            program=lower(topology, workload, plan),
            measured=self.backend.prepare(topology, workload, plan)(),
            num_iterations=self.iterations_per_epoch,
            migration_s=change_s,
            moved_bytes=num_bytes,
        )

    def baseline(self, base_world: Topology) -> Baseline:
        """Figures of the uniform plan on the base links."""
        if self.backend is not None:
            plan = self.plan(self.uniform_placement)
            measured = self.backend.prepare(base_world, self.workload, plan)()
            return Baseline(
                iteration_time_s=measured.makespan_s,
                communication_cost=exposed_cycles(measured),
            )
        result = self.simulate(base_world, self.uniform_placement)
        return Baseline(
            iteration_time_s=result.makespan_s,
            communication_cost=result.communication_cost_bytes,
        )

    @cached_property
    def observation_scales(self) -> tuple[float, float]:
        """Largest bandwidth and latency that an observation can meet."""
        world, law = self.world, self.world.dynamics
        if not isinstance(law, UniformLaw):
            return highest_figures(world)
        return (
            world.largest_bandwidth_bytes_per_s * (1.0 + law.bandwidth_fluctuation),
            world.largest_latency_s * (1.0 + law.latency_jitter),
        )

    def observe(self, topology: Topology, last_placement: Placement) -> np.ndarray:
        """Observation of the links at the start of an epoch, float32 in [0, 1], (2 K^2 + K,).

        Bandwidth matrix over (intra bandwidth x (1 + fluctuation)), latency matrix over
        (largest base latency x (1 + jitter)), share of layers per domain in the last placement.
        Laws other than the uniform one have `agents.flat.worlds.highest_figures` in place of both.
        """
        bandwidth, latency = path_matrices(topology.at_start())
        bandwidth_scale, latency_scale = self.observation_scales
        counts = np.bincount(last_placement.domain_of_layer, minlength=self.world.num_domains)
        parts = (
            bandwidth.ravel() / bandwidth_scale,
            latency.ravel() / (latency_scale or 1.0),
            counts / self.workload.num_layers,
        )
        return np.concatenate(parts).astype(np.float32)

    def metrics(self, epoch: EpochResult | MeasuredEpoch, baseline: Baseline) -> dict[str, float]:
        """All figures of one epoch, by name with unit; means per iteration bear the change."""
        further = {}
        if isinstance(epoch, MeasuredEpoch):
            cost, num_stages = epoch.communication_cost_cycles, len(epoch.program.stages)
            further[MEASURED_BYTES] = epoch.communication_bytes
        else:
            cost, num_stages = epoch.communication_cost_bytes, len(epoch.iterations[0].stages)
        num_tokens = epoch.num_iterations * self.workload.tokens_per_iteration
        return {
            "iteration_time_s": epoch.iteration_time_s,
            "utilisation": epoch.utilisation,
            self.cost_name: cost,
            "bubble_fraction": epoch.bubble_fraction,
            "tokens_per_s": num_tokens / epoch.duration_s,
            "num_stages": float(num_stages),
            "fits_memory": float(epoch.fits_memory),
            "memory_overflow_fraction": epoch.memory_overflow_fraction,
            "migration_s": epoch.migration_s,
            "moved_bytes": epoch.moved_bytes,
            **further,
            **self.baseline_metrics(baseline),
        }

    def baseline_metrics(self, baseline: Baseline) -> dict[str, float]:
        """Figures of the baseline, by name with unit."""
        return {
            "baseline_iteration_time_s": baseline.iteration_time_s,
            f"baseline_{self.cost_name}": baseline.communication_cost,
        }

    def reward(self, metrics: dict[str, float]) -> float:
        """``w1 (T_base - T) / T_base + w2 U - w3 C / C_base``; 1 + overflow less if over memory.

        T is the iteration time, U the utilisation of all GPUs, C the communication cost, means of
        the epoch that bear the change of placement; the base is an iteration of the uniform plan on
        the links at their base figures. Where it communicates nothing (one domain) the last term is
        0. A plan over memory is judged as if it fitted, then fined.
        """
        base_s = metrics["baseline_iteration_time_s"]
        base_cost = metrics[f"baseline_{self.cost_name}"]
        relative_cost = metrics[self.cost_name] / base_cost if base_cost else 0.0
        fine = 0.0 if metrics["fits_memory"] else 1.0 + metrics["memory_overflow_fraction"]
        return (
            self.weights.time * (base_s - metrics["iteration_time_s"]) / base_s
            + self.weights.utilisation * metrics["utilisation"]
            - self.weights.communication * relative_cost
            - fine
        )
