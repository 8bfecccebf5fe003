"""Pictures of plans and of single runs from fixed data, by the function that makes each."""

from functools import cache

import numpy as np
import pandas as pd
from spot_cases import RandomChoice, set_offers, three_sites
from strategies import plan, unit_workload, world

from agents.decide import decide
from agents.replanning.spot.clairvoyant import most_tokens
from agents.replanning.spot.table import SpotCase
from des import lower, memory_timeline, read_topology, simulate
from des.dynamics.site_course import SiteCourse
from des.spot.engine import run_spot
from des.spot.world import SpotWorld
from des.training.background import LoadSample
from des.training.training_history import EpochRow, IterationRow, TrainingHistory
from des.views.gantt import gantt_figure
from des.views.link_cells import link_cells
from des.views.memory_figure import memory_figure
from des.views.plan_views import known_places
from des.views.site_map import site_map
from des.world.domain_load import DomainLoad
from scenarios.explore.bubbles import bubble_figure
from scenarios.explore.scene import Settings, scene_of
from scenarios.explore.what_if import bandwidth_sweep, family_map, sweep_lines
from scenarios.iteration.iteration_config import Config
from scenarios.iteration.iteration_scenario import load_iteration
from scenarios.run.decide_report import rivals_figure
from scenarios.run.spot_outputs import SpotRun, spot_figure
from scenarios.run.training_run_figure import training_run_figure

SMALL = Settings(model="llama2_7b", num_sequences=4)


@cache
def iteration(network="east_central_west", placement="0*28,1*26,2*26"):
    """World, workload and plan of ``simulate``, and its iteration."""
    loaded = load_iteration(Config(network=network, placement=placement))
    case = loaded.topology, loaded.workload, loaded.plan
    return case, simulate(*case)


@cache
def many_stages():
    """A stage for each layer, to and fro between three domains, like first actions at random."""
    links = dict.fromkeys(("AB", "BA", "BC", "CB", "AC", "CA"), (10.0, 0.1))
    case = (
        world("ABC", links),
        unit_workload([(1.0, 2.0)] * 58, num_microbatches=2, message_bytes=1.0),
        plan(*(place % 3 for place in range(58))),
    )
    return case, simulate(*case)


def maps():
    """Sites on the Earth and elsewhere, with and without a plan."""
    (topology, _, _), result = iteration()
    earth = read_topology("aws_like")
    return [
        site_map(topology, result),
        site_map(topology),
        site_map(earth, places=known_places(earth)),
    ]


def links():
    """Three domains and more."""
    (topology, _, _), result = iteration()
    (many, _, _), of_many = iteration("aws_like", "0*28,3*26,4*26")
    return [link_cells(topology, result), link_cells(many, of_many)]


def charts():
    """Few stages and many."""
    return [gantt_figure(result) for _, result in (iteration(), many_stages())]


def memories():
    """A panel for each device."""
    case, result = iteration()
    return [memory_figure(memory_timeline(lower(*case), result), makespan_s=result.makespan_s)]


def training_runs():
    """Three domains with long names, a change of plan and a stall; and nothing but iterations."""
    domains = ("eu-central-1-frankfurt", "us-east-1-virginia", "ap-northeast-1-tokyo")
    starts_s = [0.0, 10.0, 25.0, 35.0]
    rows = tuple(
        IterationRow(number, 0, start_s, 10.0, 0.0, 0.0, 1.0)
        for number, start_s in enumerate(starts_s)
    )
    epochs = tuple(
        EpochRow(
            epoch=number, start_s=start_s, plan=plan(0, 0), moved_bytes=moved, drain_s=0.0,
            migration_s=migration_s, stall_s=0.0, num_iterations=2,
        )
        for number, (start_s, moved, migration_s) in enumerate([(0.0, 0.0, 0.0), (20.0, 3e11, 5.0)])
    )  # fmt: skip
    load = DomainLoad(utilisation=0.25, memory_occupancy=0.999, queue_length=3)
    loads = tuple(LoadSample.of(10.0 * one, one, load) for one in range(3))
    run = {"domains": domains, "total_s": 48.0, "iterations": rows, "epochs": epochs}
    return [
        training_run_figure(TrainingHistory(**run, loads=loads), title="A run of 48 s"),
    ]


def bubbles():
    """Four schedules."""
    rows = [
        {
            "schedule": schedule,
            "microbatches": number,
            "bubble_fraction": factor / number,
            "free_links": 2 / (number + 2),
            "memory_fraction": 0.3 * factor,
        }
        for schedule, factor in (("1f1b", 2.0), ("1f1b_4x", 2.5), ("gpipe", 3.0), ("zb_h1", 1.0))
        for number in (4, 8, 16, 32)
    ]
    return [bubble_figure(pd.DataFrame(rows))]


@cache
def sweep():
    """Families of a small model at five bandwidths."""
    factors = 10.0 ** np.linspace(-4, 1, 5)
    return bandwidth_sweep(scene_of(SMALL), factors=tuple(factors))


def sweeps():
    """Lines of families."""
    return [sweep_lines(sweep())]


def rivals():
    """Bars of the kinds of plans near the best."""
    scene = scene_of(SMALL)
    return [rivals_figure(decide(scene.topology, SMALL.job, trainer="ideal"))]


def family_maps():
    """Two numbers of sequences at five bandwidths."""
    return [family_map(SMALL, num_sequences=(4, 16), factors=(0.0625, 0.25, 1.0, 4.0, 16.0))]


def held_sites():
    """A fixed plan on a site that comes and goes, on one of a long name and on one always there."""
    course = SiteCourse(
        sites=("a", "ap-northeast-1-tokyo", "c"),
        tick_s=1800.0,
        up=np.array([(1, 0, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1)], np.bool_),
    )
    world = SpotWorld(course=course, offers=set_offers(3))
    case = SpotCase(name="three", model="llama2_7b", world=world, law=three_sites())
    held: list[int] = []
    policy = RandomChoice(len(world.offers.names), 3)
    history = run_spot(world, policy, 0, watch=held.append)
    run = SpotRun(
        case=case,
        held=tuple(held),
        histories={"greedy": history},
        horizons_h={"greedy": 1.0},
        idle=frozenset(),
        most_tokens=most_tokens(world),
        rule="greedy",
    )
    return [spot_figure(run)]


PICTURES = {
    "des.views.site_map:site_map": maps,
    "des.views.link_cells:link_cells": links,
    "des.views.gantt:gantt_figure": charts,
    "des.views.memory_figure:memory_figure": memories,
    "scenarios.run.training_run_figure:training_run_figure": training_runs,
    "scenarios.run.spot_outputs:spot_figure": held_sites,
    "scenarios.explore.bubbles:bubble_figure": bubbles,
    "scenarios.explore.what_if:sweep_lines": sweeps,
    "scenarios.explore.what_if:family_map": family_maps,
    "scenarios.run.decide_report:rivals_figure": rivals,
}
