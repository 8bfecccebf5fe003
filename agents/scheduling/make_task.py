"""The scheduling task from the arguments of its environments."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.decision.depths import DEPTHS
from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.load import LoadLaw
from agents.decision.plan_space import PlanSpace
from agents.decision.trained_workload import trained_workload
from agents.decision.world import DecisionWorld
from agents.scheduling.job_world import JobWorld
from agents.scheduling.setting import Setting
from agents.scheduling.task import NUM_KNOWN, PENALTY, Actions, SchedulingTask
from agents.search.ideal_plans import ideal_plans
from agents.search.objective import preference_of
from agents.search.sketches import quickest_bound
from agents.trainers.ideal import IDEAL
from agents.trainers.table import DEFAULT_TRAINER, trainer_named
from agents.trainers.trainer import Trainer
from des import (
    DYNAMICS,
    NO_CORRECTIONS,
    STEADY,
    Corrections,
    Law,
    Topology,
    UniformLaw,
    Workload,
    build_workload,
    read_topology,
)
from des.base.checks import require_positive
from des.plan.replacement import Replacement

LOAD = LoadLaw(low_factor=0.5, high_factor=1.0, dwell_epochs=8)
"""Default load: other jobs take up to half of a domain, and something else every 8 epochs."""

NETWORK, MODEL, NUM_MICROBATCHES, LAW = "four_uneven", "llama2_7b", 32, "markov_slow"
NUM_EPOCHS, EPOCH_S, PERIOD_STEPS = 64, 1200.0, 100
"""Defaults of the environment."""


def make_scheduling_task(
    *,
    world: DecisionWorld | None = None,
    families: tuple[Family, ...] = SYNCHRONOUS,
    schedules: tuple[str, ...] = DEPTHS,
    period_steps: int = PERIOD_STEPS,
    num_known: int = NUM_KNOWN,
    actions: Actions = "all",
    penalty: float = PENALTY,
    num_draws: int | None = None,
    corrections: Corrections = NO_CORRECTIONS,
    trainer: str | None = None,
    objective: str = "time",
    **of_world: Any,
) -> SchedulingTask:
    """Put a scheduling task together from the arguments of the environment.

    Parameters
    ----------
    world
        A world that is there already, such as one of the suites; None: that which `make_world`
        makes of ``of_world``.
    families, schedules
        Plans allowed; schedules are ones with a pace, see `des.schedules.pace_of`.
    period_steps
        Iterations between two exchanges of a parameter in ``diloco`` and ``streaming_diloco``.
    num_known, actions, penalty, num_draws
        See `agents.scheduling.task.SchedulingTask`.
    corrections
        Calibrated factors for the simulator.
    trainer
        Trainer that runs the plans, with GPUs, schedule and stages of its own; ``ideal``: each
        domain counts as one perfect device, which no trainer has. A trainer needs families that
        exchange after every step. None: the default one, and ``ideal`` for a world that is given,
        whose job has the gradients that it has.
    objective
        ``time``, or weights ``w1,w2,w3`` of speed, utilisation and bytes in the reward.

    Raises
    ------
    ValueError
        If arguments contradict each other or are out of range.
    InfeasiblePlacementError
        If no plan of the families allowed fits.
    """
    if world is not None and of_world:
        raise ValueError(
            f"environment: {', '.join(of_world)} must be left out where world is given, got "
            f"{', '.join(f'{name}={value!r}' for name, value in of_world.items())}"
        )
    space = PlanSpace(
        families=families, schedules=schedules, period_steps=period_steps, bits=(16.0,)
    )
    by_default = DEFAULT_TRAINER if world is None else IDEAL.name
    run_by = trainer_named(by_default if trainer is None else trainer)
    known_world = make_world(**of_world, trainer=run_by) if world is None else world
    return SchedulingTask(
        setting=Setting(world=known_world, space=space, corrections=corrections, trainer=run_by),
        num_known=num_known,
        actions=actions,
        penalty=penalty,
        num_draws=num_draws,
        preference=preference_of("environment", objective),
    )


def make_world(
    network: str | Path | Topology = NETWORK,
    model: str | Workload = MODEL,
    *,
    num_microbatches: int = NUM_MICROBATCHES,
    law: str | Law | None = LAW,
    load: LoadLaw = LOAD,
    num_epochs: int = NUM_EPOCHS,
    epoch_s: float = EPOCH_S,
    replacement: Replacement | None = None,
    trainer: Trainer = IDEAL,
) -> JobWorld:
    """Make the world of the environment.

    Parameters
    ----------
    network
        A shipped world by its name, a file, or a topology.
    model, num_microbatches
        A model preset with that many microbatches an iteration; or a workload, which has its own.
    law
        Law of the links: one of `des.DYNAMICS` by name, or any; None: that of the network, where a
        uniform law that is drawn once an epoch holds for ``epoch_s``.
    load
        Speed of the domains, epoch by epoch.
    replacement
        Cost of a change of plan; None: the model state and a restart.
    trainer
        Trainer of the job, whose gradients it has.
    """
    topology = network if isinstance(network, Topology) else read_topology(network)
    if isinstance(model, Workload):
        if num_microbatches != NUM_MICROBATCHES:
            raise ValueError(
                "environment: num_microbatches must be left out where model is a workload, got "
                f"{num_microbatches!r}"
            )
        workload = model
    else:
        workload = build_workload(model, num_microbatches=num_microbatches)
    workload = trained_workload(workload, trainer)
    require_positive("environment", "epoch_s", epoch_s)
    topology = replace(topology, dynamics=_law(topology, law, epoch_s))
    step_s = _quickest_s(topology.at_start(), workload, trainer)
    return JobWorld(
        topology=topology,
        workload=workload,
        load=load,
        epoch_s=epoch_s,
        num_epochs=num_epochs,
        iterations_per_epoch=max(1, int(epoch_s / step_s)),
        replacement=Replacement() if replacement is None else replacement,
        name=workload.name,
    )


def _quickest_s(topology: Topology, workload: Workload, trainer: Trainer) -> float:
    """Time of a step of the quickest plan. [s]"""
    if not trainer.is_ideal:
        return quickest_bound(topology, workload, trainer).step_s
    space = PlanSpace(schedules=DEPTHS)
    return ideal_plans(topology, workload, space)[0].step_s


def _law(topology: Topology, law: str | Law | None, epoch_s: float) -> Law:
    if isinstance(law, str):
        if law not in DYNAMICS:
            raise ValueError(
                f"environment: law must be one of {', '.join(DYNAMICS)}, a law or None; got {law!r}"
            )
        law = DYNAMICS[law]
    chosen = topology.dynamics if law is None else law
    is_still = chosen == STEADY
    if isinstance(chosen, UniformLaw) and chosen.update_interval_s is None and not is_still:
        return replace(chosen, update_interval_s=epoch_s)
    return chosen
