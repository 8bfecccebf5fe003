"""A placement task as arrays for compiled code, and arrays for the state of a batch."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from agents.flat.task import PlacementTask
from agents.flat.worlds import GivenWorld
from des import Placement, Topology, UniformLaw
from des.compiled.many.layer_sums import sums_table
from des.compiled.many.layout import Course, Figures, Links, Outcome, Real, Runs, Small, Work
from des.costs.memory import model_state_bytes
from des.costs.stage_times import compute_rate_flops_per_s


def links_of(task: PlacementTask, world: Topology) -> Links:
    """Links of a world, routes included; but for their figures those of all worlds are alike."""
    law, domains = task.world.dynamics, world.domains
    fluctuation = jitter = 0.0
    if type(law) is UniformLaw and not law.correlation:  # all else is drawn in Python
        fluctuation, jitter = float(law.bandwidth_fluctuation), float(law.latency_jitter)
    size = len(domains)
    routes = [
        () if source == target else world.route(source, target)
        for source in range(size)
        for target in range(size)
    ]
    back = [world.link_index.get((target, source), -1) for source, target in world.link_index]
    bandwidth_scale, latency_scale = task.observation_scales
    window_bytes = world.transport.message_window_bytes
    return Links(
        back=np.array(back, dtype=np.int32),
        route_start=np.cumsum([0, *map(len, routes)], dtype=np.int32),
        hops=np.array([hop for route in routes for hop in route], dtype=np.int32),
        window_bytes=np.inf if window_bytes is None else float(window_bytes),
        bandwidth_fluctuation=fluctuation,
        latency_jitter=jitter,
        inner_bandwidth_bytes_per_s=_real(one.intra_bandwidth_bytes_per_s for one in domains),
        inner_latency_s=_real(one.intra_latency_s for one in domains),
        bandwidth_scale=float(bandwidth_scale),
        latency_scale=float(latency_scale or 1.0),
        wan_bandwidth_factor=float(task.corrections.wan_bandwidth_factor),
        wan_latency_factor=float(task.corrections.wan_latency_factor),
    )


def pairs_of_links(num_domains: int) -> Small:
    """Pair of each link of a world in which every two domains are joined, both ways."""
    number = {pair: at for at, pair in enumerate(combinations(range(num_domains), 2))}
    ends = [(a, b) for a in range(num_domains) for b in range(num_domains) if a != b]
    return np.array([number[min(pair), max(pair)] for pair in ends], dtype=np.int32)


def batch_work_of(task: PlacementTask, world: Topology) -> Work:
    """Work of the layers and figures of the domains, as compiled code takes them."""
    workload, weights, corrections = task.workload, task.weights, task.corrections
    world.require_no_limits("environment, compiled")
    for domain in world.domains:
        if domain.kernels is not None:
            raise ValueError(
                f"environment: layer_times of domain {domain.name} must be fraction in the "
                f"compiled environment, got {domain.source_of_layer_times}"
            )
    return Work(
        sums_before=sums_table(workload, world.domains),
        num_parameters=_real(workload.num_parameters),
        rate_flops_per_s=_real(compute_rate_flops_per_s(one, corrections) for one in world.domains),
        capacity_bytes=_real(domain.memory_bytes for domain in world.domains),
        bytes_per_parameter=model_state_bytes(workload, 1.0, None),
        message_bytes=float(workload.message_bytes),
        flops_per_iteration=float(workload.flops_per_iteration),
        tokens_per_iteration=float(workload.tokens_per_iteration),
        peak_flops_per_s=float(world.peak_flops_per_s),
        epochs_per_episode=int(task.epochs_per_episode),
        num_iterations=int(task.iterations_per_epoch),
        time_weight=float(weights.time),
        utilisation_weight=float(weights.utilisation),
        communication_weight=float(weights.communication),
    )


def write_runs(runs: Runs, row: int, placement: Placement) -> None:
    """Write down a placement."""
    stages = placement.stages
    runs.num_stages[row] = len(stages)
    runs.domain[row, : len(stages)] = [stage.domain for stage in stages]
    runs.end_layer[row, : len(stages)] = np.cumsum([stage.num_layers for stage in stages])


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchArrays:
    """All that compiled code knows of a batch; what a placement costs is kept for one step."""

    links: Links
    work: Work
    uniform: Runs
    course: Course
    placed: Runs
    outcome: Outcome

    @property
    def bytes_per_env(self) -> float:
        """Memory of the arrays that have a row for each environment, per environment. [bytes]"""
        num_envs = len(self.course.number)
        groups = (self.course, self.course.base, self.course.now, self.course.last)
        arrays = [
            array
            for group in (*groups, self.placed, self.outcome)
            for array in group
            if isinstance(array, np.ndarray) and len(array) == num_envs
        ]
        return sum(array.nbytes for array in arrays) / num_envs


def new_batch_arrays(task: PlacementTask, num_envs: int) -> BatchArrays:
    """Allocate the arrays of a batch, in which no episode has begun."""
    world = task.world.world(0)
    is_given = isinstance(task.world, GivenWorld)
    num_links, num_layers = len(world.links), task.workload.num_layers
    most_stages = num_layers if task.actions == "per_layer" else min(num_layers, world.num_domains)
    uniform = _new_runs(1, most_stages)
    write_runs(uniform, 0, task.uniform_placement)
    baseline = task.baseline(world) if is_given else None
    course = Course(
        number=np.full(num_envs, -1),
        epoch=np.zeros(num_envs, np.int64),
        seed=np.zeros(num_envs, np.int64),
        start_s=np.zeros(num_envs),
        base=_figures_of(world) if is_given else _new_figures(num_envs, num_links),
        now=_new_figures(num_envs, num_links),
        last=_new_runs(num_envs, most_stages),
        baseline_time_s=np.full(num_envs, baseline.iteration_time_s if baseline else 0.0),
        baseline_bytes=np.full(num_envs, baseline.communication_cost if baseline else 0.0),
    )
    return BatchArrays(
        links=links_of(task, world),
        work=batch_work_of(task, world),
        uniform=uniform,
        course=course,
        placed=_new_runs(num_envs, most_stages),
        outcome=Outcome(*(np.zeros(num_envs) for _ in Outcome._fields)),
    )


def _figures_of(world: Topology) -> Figures:
    """Figures of the links of one world, one row."""
    return Figures(
        bandwidth_bytes_per_s=_real(link.bandwidth_bytes_per_s for link in world.links)[None],
        latency_s=_real(link.latency_s for link in world.links)[None],
    )


def _new_figures(num_rows: int, num_links: int) -> Figures:
    return Figures(np.ones((num_rows, num_links)), np.ones((num_rows, num_links)))


def _new_runs(num_rows: int, most_stages: int) -> Runs:
    return Runs(
        num_stages=np.zeros(num_rows, np.int32),
        domain=np.zeros((num_rows, most_stages), np.int32),
        end_layer=np.zeros((num_rows, most_stages), np.int32),
    )


def _real(figures: Iterable[float]) -> Real:
    return np.array(list(figures), dtype=np.float64)
