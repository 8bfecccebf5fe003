"""The quickest of all plans of Megatron-LM on a small world, by going through them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.desk import SearchDesk
from agents.search.kernels.records import new_room
from agents.search.settings import BoundSetting
from agents.trainers.trainer import Trainer
from des import NO_CORRECTIONS, Topology
from scenarios.study.enumeration.bounds import Least
from scenarios.study.enumeration.pipelines import PipelineCase, best_pipeline_s
from scenarios.study.enumeration.site_copies import best_copies
from scenarios.study.enumeration.space import MOST_SITES, orders_of_sites, settings_in


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
    desk = SearchDesk(topology=topology, job=job, corrections=NO_CORRECTIONS)
    counts, best = np.zeros(2, np.int64), ""
    settings = list(settings_in(topology, job, trainer))
    for number, setting in enumerate(settings):
        if number % max(1, len(settings) // 10) == 0:
            note(f"{number} of {len(settings)} settings, best {limit_s:.3f} s, {counts[1]} plans")
        found_s, text = _best_pipeline(desk, setting, limit_s, counts)
        if text:
            limit_s, best = found_s, text
        found_s, plan = best_copies(desk, trainer, setting, limit_s, counts)
        if plan is not None:
            limit_s, best = found_s, f"{_text(setting)} {plan}"
    return Enumerated(
        step_s=limit_s, plan=best, num_plans=int(counts[0]), num_simulated=int(counts[1])
    )


def _best_pipeline(
    desk: SearchDesk, setting: BoundSetting, limit_s: float, counts: np.ndarray
) -> tuple[float, str]:
    """Quickest pipeline of a setting below a limit in words, empty if there is none. [s]"""
    figures, rules = desk.figures(setting), desk.rules(setting, is_whole=True)
    chunks, count = setting.num_chunks, rules.num_microbatches
    num_workers = min(int(figures.num_devices.sum()), desk.job.layer_count // chunks)
    room, least = new_room(num_workers, chunks, 2 * chunks * count, count), Least.of(figures)
    text = ""
    for order in orders_of_sites(desk.topology.num_domains):
        found = np.zeros((len(order), 2), np.int64)
        case = PipelineCase(figures, least, room, found, counts)
        scratch = np.zeros((len(order), 3), np.int64)
        limit_s = float(best_pipeline_s(case, rules, np.array(order), limit_s, scratch))
        if found[0, 0]:
            sites = ", ".join(
                f"{desk.topology.domains[site].name} {layers} layers on {devices}"
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
