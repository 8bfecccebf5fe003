"""Schedulers and rules in a training run: what they see, and what comes of it."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import free_world, unit_workload, world

from agents.decision.problem import PlanningProblem
from agents.decision.situation import Decision, Situation
from agents.planners.table import PLANNERS
from agents.replanning.table import RULES, SCHEDULERS
from agents.replanning.training_schedulers import (
    ScheduledRun,
    TrainingEpisode,
    plan_ahead,
    plans_of_rule,
)
from des import TrainingRun, UniformLaw, run_training
from des.dynamics import DYNAMICS
from des.training.background import BackgroundLoad, beside_jobs
from des.training.foresight import foreseen_views

PAIR = world("AB", {"AB": (8.0, 0.25), "BA": (8.0, 0.25)})
JOB = unit_workload([(1, 1)] * 4, num_microbatches=2, message_bytes=8.0)
RUN = TrainingRun(num_epochs=4, epoch_s=200.0, seed=3, restart_s=1.0)
JOBS = BackgroundLoad(
    arrivals_per_s=0.01,
    mean_duration_s=150.0,
    gpu_fraction=0.25,
    memory_fraction=0.0,
    most_jobs=3,
)
MOVING = replace(PAIR, dynamics=UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.0))


class Watching:
    """Holds the plan of a planner, and keeps what it was shown."""

    def __init__(self):
        self.inner = SCHEDULERS["search_once"]()
        self.seen: list[Situation] = []

    def begin(self):
        self.inner.begin()
        self.seen = []

    def decide(self, situation: Situation) -> Decision:
        self.seen.append(situation)
        return self.inner.decide(situation)


def scheduled(scheduler, topology=MOVING, run=RUN, **kwargs):
    return ScheduledRun(
        scheduler=scheduler, topology=topology, workload=JOB, run=run, **kwargs
    ).decide()


def test_a_scheduler_sees_the_links_and_loads_of_the_epoch_and_the_cost_of_a_change():
    run, watching = replace(RUN, background=(JOBS, None)), Watching()
    views, decide = [], scheduled(watching, run=run)

    def planner(view):
        views.append(view)
        return decide(view)

    history = run_training(MOVING, JOB, planner, run)

    assert len(watching.seen) == len(views) == len(history.epochs)
    assert any(view.loads[0].utilisation > 0 for view in views)
    for view, seen in zip(views, watching.seen, strict=True):
        assert seen.topology.links == view.topology.links
        assert seen.topology == beside_jobs(view.topology, view.loads)  # jobs take no memory here
        assert seen.loads in (view.loads, ())
        assert seen.replacement.restart_s == 1.0
        assert seen.last_plan == view.plan


def test_foreseen_networks_and_loads_are_those_that_the_run_meets():
    """An epoch that begins at its nominal start: iterations of 1 s divide it on free links."""
    law = replace(free_world(2), dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.0))
    views = []

    def planner(view):
        views.append(view)
        return PLANNERS["uniform"](
            PlanningProblem(topology=view.topology, workload=JOB), np.random.default_rng(0)
        )

    run_training(law, JOB, planner, RUN)

    assert [view.topology for view in views] == [view.topology for view in foreseen_views(law, RUN)]
    still = run_training(
        PAIR, JOB, scheduled(Watching(), PAIR), replace(RUN, background=(JOBS,) * 2)
    )
    by_time = [view.loads for view in foreseen_views(PAIR, replace(RUN, background=(JOBS,) * 2))]
    for number, loads in enumerate(by_time):
        for domain, load in enumerate(loads):
            last = [
                sample
                for sample in still.loads
                if sample.domain == domain and sample.time_s <= number * RUN.epoch_s
            ][-1]
            assert (last.gpu_utilisation, last.queue_length) == (
                load.utilisation,
                load.queue_length,
            )


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("law", ["steady", "markov_fast", "moving"])
def test_every_rule_decides_a_training_run(name, law):
    topology = replace(PAIR, dynamics=DYNAMICS[law]) if law in DYNAMICS else MOVING
    episode = TrainingEpisode(topology=topology, workload=JOB, schedule="1f1b", run=RUN)

    plans = plans_of_rule(RULES[name], episode)
    history = run_training(topology, JOB, plan_ahead(plans), RUN)

    assert len(plans) == 4
    assert [row.plan for row in history.epochs] == [plans[row.epoch] for row in history.epochs]
    if name == "static" or law == "steady":
        assert len(set(plans)) == 1


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_decides_a_training_run(name):
    run = replace(RUN, background=(JOBS, None))

    one, again = (
        run_training(MOVING, JOB, scheduled(SCHEDULERS[name](), run=run), run) for _ in range(2)
    )

    assert one == again
    assert len(one.epochs) > 1


def test_a_run_without_a_number_of_epochs_cannot_be_foreseen():
    endless = TrainingRun(num_iterations=5)
    with pytest.raises(ValueError, match="num_epochs"):
        TrainingEpisode(topology=PAIR, workload=JOB, schedule="1f1b", run=endless)
    with pytest.raises(ValueError, match="num_epochs"):
        foreseen_views(PAIR, endless)
