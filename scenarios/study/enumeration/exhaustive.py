"""The quickest of all plans of Megatron-LM on a small world, by going through them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.kernels.records import new_room
from agents.search.schedule_choice import GROUP_FACTORS, INTERLEAVED, MOST_CHUNKS
from agents.search.settings import MOST_TENSOR, BoundSetting, Degrees, num_stages_of
from agents.search.workspace import Workspace
from agents.trainers.trainer import Trainer
from des import NO_CORRECTIONS, Topology
from des.job.models import architecture_named
from scenarios.study.enumeration.bounds import Least
from scenarios.study.enumeration.pipelines import PipelineCase, best_pipeline_s
from scenarios.study.enumeration.site_copies import best_copies

SIZES = (1, 2, 4, 8)
"""Sequences of a microbatch on a data rank."""

MOST_SITES = 3
"""Most sites of a world; the number of orders of sites grows with its factorial."""


def settings_in(topology: Topology, job: TrainingJob, trainer: Trainer) -> Iterator[BoundSetting]:
    """All settings that a site has room for: degrees, sizes, recomputation, schedules.

    Tensor degrees divide the heads, data degrees the sequences, expert degrees the copies and the
    experts. Where there are copies of a stage their optimiser is sharded.
    """
    for degrees in _degrees(topology, job):
        for size in SIZES:
            if job.num_sequences % (size * degrees.data):
                continue
            for recomputation in ("flash", "full"):
                for schedule, chunks, factor in _orders():
                    yield BoundSetting(
                        degrees=degrees,
                        microbatch_size=size,
                        recomputation=recomputation,
                        gradient_precision=trainer.gradient_precision,
                        schedule=schedule,
                        num_chunks=chunks,
                        group_factor=factor,
                        is_blocking=trainer.sends_under(schedule) == "blocking",
                        whole_groups=trainer.whole_groups,
                    )


def _degrees(topology: Topology, job: TrainingJob) -> Iterator[Degrees]:
    architecture = architecture_named(job.model)
    num_experts = 1 if architecture.experts is None else architecture.experts.num_experts
    for tensor in _divisors(architecture.num_heads):
        for data in _divisors(job.num_sequences):
            for expert in _divisors(data):
                degrees = Degrees(
                    tensor=tensor,
                    data=data,
                    expert=expert,
                    sharding="optimiser" if data > 1 else "none",
                )
                has_room = any(num_stages_of(domain, degrees) for domain in topology.domains)
                if tensor <= MOST_TENSOR and num_experts % expert == 0 and has_room:
                    yield degrees


def _divisors(total: int) -> list[int]:
    return [each for each in range(1, total + 1) if total % each == 0]


def _orders() -> Iterator[tuple[str, int, float]]:
    """Schedules with chunks of a device, and microbatches of a group over devices."""
    yield "1f1b", 1, 1.0
    for chunks in range(2, MOST_CHUNKS + 1):
        for factor in GROUP_FACTORS:
            yield INTERLEAVED, chunks, factor


def orders_of_sites(num_sites: int) -> list[tuple[int, ...]]:
    """Every order of every set of sites.

    Examples
    --------
    >>> orders_of_sites(2)
    [(0,), (1,), (0, 1), (1, 0)]
    """
    return [
        order
        for count in range(1, num_sites + 1)
        for order in permutations(range(num_sites), count)
    ]


@dataclass(frozen=True, kw_only=True)
class Enumerated:
    """Result of an enumeration.

    Attributes
    ----------
    step_s
        Time of the quickest plan; the limit if none is below it. [s]
    plan
        That plan in words; empty if none is below the limit.
    num_plans, num_simulated
        Plans whose bound was taken, and those that were simulated.
    """

    step_s: float
    plan: str
    num_plans: int
    num_simulated: int


def enumerate_all(
    topology: Topology,
    job: TrainingJob,
    trainer: Trainer,
    limit_s: float,
    note: Callable[[str], None],
) -> Enumerated:
    """Go through all plans that may be below a limit.

    Raises
    ------
    ValueError
        If the world has more sites than an enumeration can do.
    """
    if topology.num_domains > MOST_SITES:
        raise ValueError(
            f"enumeration: the world must have at most {MOST_SITES} sites, "
            f"got {topology.num_domains}"
        )
    workspace = Workspace(topology=topology, job=job, corrections=NO_CORRECTIONS)
    counts, best = np.zeros(2, np.int64), ""
    settings = list(settings_in(topology, job, trainer))
    for number, setting in enumerate(settings):
        if number % max(1, len(settings) // 10) == 0:
            note(f"{number} of {len(settings)} settings, best {limit_s:.3f} s, {counts[1]} plans")
        found_s, text = _best_pipeline(workspace, setting, limit_s, counts)
        if text:
            limit_s, best = found_s, text
        found_s, plan = best_copies(workspace, trainer, setting, limit_s, counts)
        if plan is not None:
            limit_s, best = found_s, f"{_text(setting)} {plan}"
    return Enumerated(
        step_s=limit_s, plan=best, num_plans=int(counts[0]), num_simulated=int(counts[1])
    )


def _best_pipeline(
    workspace: Workspace, setting: BoundSetting, limit_s: float, counts: np.ndarray
) -> tuple[float, str]:
    """Quickest pipeline of a setting below a limit in words, empty if there is none. [s]"""
    figures, rules = workspace.figures(setting), workspace.rules(setting, is_whole=True)
    chunks, count = setting.num_chunks, rules.num_microbatches
    num_workers = min(int(figures.num_devices.sum()), workspace.job.layer_count // chunks)
    room, least = new_room(num_workers, chunks, 2 * chunks * count, count), Least.of(figures)
    text = ""
    for order in orders_of_sites(workspace.topology.num_domains):
        found = np.zeros((len(order), 2), np.int64)
        case = PipelineCase(figures, least, room, found, counts)
        scratch = np.zeros((len(order), 3), np.int64)
        limit_s = float(best_pipeline_s(case, rules, np.array(order), limit_s, scratch))
        if found[0, 0]:
            sites = ", ".join(
                f"{workspace.topology.domains[site].name} {layers} layers on {devices}"
                for site, (devices, layers) in zip(order, found.tolist(), strict=True)
            )
            text = f"{_text(setting)}: {sites}"
    return limit_s, text


def _text(setting: BoundSetting) -> str:
    """A setting in words."""
    degrees = setting.degrees
    experts = "" if degrees.expert == 1 else f" expert {degrees.expert}"
    groups = "" if setting.num_chunks == 1 else f" V {setting.num_chunks} N {setting.group_factor}p"
    return (
        f"tensor {degrees.tensor} data {degrees.data}{experts}, microbatches of "
        f"{setting.microbatch_size}, {setting.recomputation}, {setting.schedule}{groups}"
    )
