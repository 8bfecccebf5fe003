"""Decisions among plans that are bound to GPUs, and how many of these are timed a second."""

from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np

from agents.answer.bound_answer import answer_bound
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.candidates import Candidate
from agents.search.kernels.records import new_room
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.search.settings import BoundSetting, Degrees
from agents.search.workspace import Workspace
from agents.trainers.table import trainer_named
from bench.kernels.bound_pipelines import write_times_s
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, race, speed_ratio
from bench.worlds import MODEL, SEED
from des import NO_CORRECTIONS, Domain, Link, Topology
from des.compiled.simulate import makespan_compiled_s
from des.program.lowering import lower
from des.world.nodes import Nodes

NUMBERS_OF_SITES, NUM_SEQUENCES = (4, 10, 32, 64), 512
NUM_STAGES, NUM_MICROBATCHES, NUM_PLANS = 12, 64, 1024
_SITES = 3
_NODES = Nodes(gpus_per_node=8, nics_per_node=8, nic_bandwidth_bytes_per_s=50e9, nic_latency_s=5e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A decision among bound plans on a drawn world."""

    num_sites: int = column("sites of 4 servers")
    decision_ms: float = column("CPU time of a decision [ms]", ",.0f")
    times_first: float = column("x the first", ".1f")
    spread_percent: float = column("± %", ".0f")
    page_times: float = column("whole page, x the decision", ".1f")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """Bound plans that are timed a second."""

    evaluator: str = column(f"1F1B, P{NUM_STAGES} M{NUM_MICROBATCHES}")
    plans_per_s: float = column("plans per CPU second", ",.0f")
    times_first: float = column("x the first", ",.1f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> Section:
    """Time decisions on worlds of several sizes, and plans of one."""
    return Section(
        name="bound_plans",
        tables=[
            Table(title="One decision among bound plans", rows=_decisions(effort)),
            Table(title="Bound plans a second, one core", rows=_rates(effort)),
        ],
    )


def _decisions(effort: Effort) -> list[DecisionRow]:
    """Decisions of Megatron-LM's plans; the first call, which compiles, does not count."""
    numbers = (2,) if effort.is_quick else NUMBERS_OF_SITES
    asked = [(number, _request(number)) for number in numbers]
    calls = [Contestant(name=str(number), call=partial(search_bound, one)) for number, one in asked]
    calls += [
        Contestant(name=f"page {number}", call=partial(answer_bound, one, PlanObjective()))
        for number, one in asked
    ]
    each = race(calls, effort)
    timings, pages = each[: len(asked)], each[len(asked) :]
    return [
        DecisionRow(
            num_sites=int(timing.name),
            decision_ms=1e3 / timing.items_per_cpu_s,
            times_first=speed_ratio(timings[0], timing),
            spread_percent=1e2 * timing.spread_fraction,
            page_times=speed_ratio(timing, page),
        )
        for timing, page in zip(timings, pages, strict=True)
    ]


def _request(num_sites: int) -> PlanRequest:
    return PlanRequest(
        topology=_sites(num_sites),
        job=TrainingJob(model=MODEL, num_sequences=NUM_SEQUENCES),
        trainer=trainer_named("megatron"),
    )


def _rates(effort: Effort) -> list[RateRow]:
    """Splits of one chain by the recurrence of the search, and as whole plans that are lowered."""
    topology = _sites(_SITES)
    job = TrainingJob(model=MODEL, num_sequences=NUM_MICROBATCHES)
    workspace = Workspace(topology=topology, job=job, corrections=NO_CORRECTIONS)
    setting = BoundSetting(
        degrees=Degrees(tensor=8),
        microbatch_size=1,
        recomputation="flash",
        gradient_precision="fp32",
        schedule="1f1b",
        is_blocking=True,
    )
    count = 4 if effort.is_quick else NUM_PLANS
    splits = _splits(job.layer_count, count)
    figures, rules = workspace.figures(setting), workspace.rules(setting, is_whole=True)
    chain, times_s = tuple(range(_SITES)), np.zeros(count)
    room = new_room(NUM_STAGES, 1, 2 * NUM_MICROBATCHES, NUM_MICROBATCHES)
    plans = [
        Candidate(
            setting=setting,
            chains=(chain,),
            splits=(tuple((devices, layers) for devices, layers in split),),
            estimate_s=0.0,
        ).plan(topology)
        for split in splits[: max(1, count // 64)].tolist()
    ]
    workload = setting.workload(job)

    def simulate_all() -> None:
        for plan in plans:
            makespan_compiled_s(topology, lower(topology, workload, plan))

    arrays = figures, rules, np.array(chain), splits, room, times_s
    calls = [
        Contestant(name="whole plans, lowered", call=simulate_all, num_items=len(plans)),
        Contestant(name="of the search", call=partial(write_times_s, *arrays), num_items=count),
    ]
    timings = race(calls, effort)
    return [
        RateRow(
            evaluator=timing.name,
            plans_per_s=timing.items_per_cpu_s,
            times_first=speed_ratio(timing, timings[0]),
            spread_percent=1e2 * timing.spread_fraction,
        )
        for timing in timings
    ]


def _splits(num_layers: int, count: int) -> np.ndarray:
    """Layers of three sites of four devices each, drawn, each device at least two."""
    rng = np.random.default_rng(SEED)
    devices = NUM_STAGES // _SITES
    layers = 2 * devices + rng.multinomial(
        num_layers - 2 * NUM_STAGES, [1.0 / _SITES] * _SITES, size=count
    )
    return np.stack([np.full_like(layers, devices), layers], axis=-1)


def _sites(count: int) -> Topology:
    """Sites of 4 servers of 8 GPUs of either of two kinds, every two joined by a drawn link."""
    rng = np.random.default_rng(0)
    domains = [
        Domain(
            name=f"site{index}",
            num_gpus=32,
            gpu_peak_flops_per_s=(989e12, 312e12)[int(rng.integers(2))],
            gpu_memory_bytes=80e9,
            gpu_memory_bandwidth_bytes_per_s=2e12,
            attainable_fraction=0.5,
            intra_bandwidth_bytes_per_s=450e9,
            intra_latency_s=3e-6,
            nodes=_NODES,
        )
        for index in range(count)
    ]
    links = [
        Link(
            source=one.name,
            target=other.name,
            bandwidth_bytes_per_s=float(rng.uniform(0.5e9, 5e9)),
            latency_s=float(rng.uniform(0.003, 0.03)),
        )
        for one, other in permutations(domains, 2)
    ]
    return Topology.of(domains, links)
