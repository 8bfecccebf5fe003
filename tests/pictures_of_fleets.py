"""Pictures of fleets, queues and servers from fixed data, by the function that makes each."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from fleet_cases import Drawn, drawn_stream, fleet_world
from queues import queued, ran

from agents.devices.placement_rules import RulesCase, compare_rules
from agents.serving.table import RULES
from bench.growth import MICROBATCHES, STAGES, Course, Series, growth_figure
from calibration.measured.collective_table import server_of_node
from des.cluster.history import Stay
from des.costs.device_groups import DeviceGroup
from des.devices.figures_file import shipped_link_figures
from des.devices.presets import simulated
from des.serving.fleet_engine import run as run_fleet
from scenarios.autoscale.capacity_search import Capacity, capacity_figure, pareto
from scenarios.autoscale.fleet_outputs import instances_figure, sizes_figure
from scenarios.autoscale.seeds_summary import curves_figure
from scenarios.devices.pictures import rules_figure, server_figure, times_figure
from scenarios.job_queue.outputs import (
    cdf_figure,
    demand_figure,
    jobs_frame,
    load_figure,
    nodes_figure,
    results_frame,
)
from scenarios.job_queue.runs import QueueRun
from scenarios.job_queue.settings import Combination
from scenarios.job_queue.share_command import share_errors_figure
from scenarios.train.train_scheduling import policies_figure


def fleet():
    """A fleet that grows and shrinks at random."""
    return run_fleet(fleet_world(drawn_stream(1), {"mixed": 2}), Drawn(3), 0)


def sizes():
    """Nine policies."""
    history = fleet()
    return [sizes_figure(dict.fromkeys(list(RULES)[:9], history)), sizes_figure({"hpa": history})]


def instances():
    """Some instances."""
    return [instances_figure("predictive", fleet())]


def capacities():
    """Twelve fleets, one of which bears no load, and none at all."""
    found = [
        Capacity(
            fleet=f"{num} mixed" if num % 2 else f"{num}+1",
            requests_per_s=None if num == 5 else 3.0 * num,
            attainment=0.99,
            usd_per_h=30.0 * num,
            usd_per_million_tokens=2.0,
        )
        for num in range(1, 13)
    ]
    return [capacity_figure(found, pareto(found), 0.99), capacity_figure(found[4:5], [], 0.99)]


def autoscaling_curves():
    """Three seeds and all rules."""
    steps = range(0, 150_528, 1024)
    curves = {
        str(seed): [
            {"step": step, "mean_reward": -0.3 - 0.6 * np.exp(-step / 2e4) - 0.01 * seed}
            for step in steps
        ]
        for seed in range(3)
    }
    levels = {name: -0.1 - 0.08 * place for place, name in enumerate(RULES)}
    return [curves_figure(curves, levels)]


def queue_runs():
    """Six schedulers, three loads and two seeds, with the same history."""
    rows = [(10.0 * number, 1 + number % 4, 100.0 + 50 * (number % 5)) for number in range(12)]
    history = ran(queued(*rows), nodes=4)
    history = replace(
        history,
        stays=tuple(Stay(one, one % 7, 2, 90.0 * one, 99.0 * one + 50.0) for one in range(30)),
    )
    return [
        QueueRun(
            combination=Combination(
                policy=policy, placing="first_free", admission="accept_all",
                preempting="worst_first", load=load, seed=seed,
            ),
            history=history, workload="w", links=(), cpu_s=0.1,
            demand=tuple((1000.0 * at, (7 * at) % 11, at % 4) for at in range(40)),
        )
        for policy in ("fifo", "las", "srtf", "optimus", "gittins", "tiresias")
        for load in (4.0, 6.0, 8.0)
        for seed in range(2)
    ]  # fmt: skip


def job_times():
    """Distributions at the highest load."""
    return [cdf_figure(jobs_frame(queue_runs()))]


def mean_times():
    """Lines over loads."""
    return [load_figure(results_frame(queue_runs(), 0.0))]


def demands():
    """GPUs wanted and free."""
    return [demand_figure(queue_runs())]


def stays():
    """A panel for each scheduler."""
    return [nodes_figure(queue_runs())]


def share_errors():
    """Sixty jobs."""
    at = np.linspace(0.0, 6.0, 60)
    jobs = pd.DataFrame({"times_slower_than_alone": 1.0 + at, "error": 0.2 * np.sin(at)})
    return [share_errors_figure(jobs, "mean 1 %, largest 20 %")]


def policies():
    """Eleven policies with wide intervals."""
    names = [f"policy {number} of all actions" for number in range(11)]
    halves = [0.0, *(4.0 * number for number in range(1, 11))]
    frame = pd.DataFrame({"policy": names, "time_percent": [-float(one) for one in range(11)]})
    return [policies_figure(frame.assign(half_width_percent=halves))]


def servers():
    """The largest server that can be simulated, one without cards, and one in between."""
    return [server_figure(simulated(name)) for name in ("dgx-2", "pcie-4", "dgx-1-v100")]


def rules():
    """Placements of four GPUs by each rule."""
    case = RulesCase(server=simulated("dgx-1-v100"), num_gpus=4)
    return [rules_figure(compare_rules(case, seed=0, num_draws=5), "4 GPUs of dgx-1-v100")]


def collectives():
    """Times with measured cells and without."""
    server = server_of_node("a100_dgx")
    group = DeviceGroup.of_server(server, shipped_link_figures(), places=range(8))
    return [times_figure(name, group, [1e6]) for name in ("all_reduce", "all_gather")]


def growths():
    """Two series."""
    make = partial(Series, simulator="compiled batch")
    series = [make(grows="stages", points=STAGES), make(grows="microbatches", points=MICROBATCHES)]
    courses = [
        Course(
            series=one,
            counts=tuple(map(one.count, one.points)),
            calls_s=tuple(1e-7 * one.count(point) for point in one.points),
        )
        for one in series
    ]
    return [growth_figure(courses)]


PICTURES = {
    "scenarios.autoscale.fleet_outputs:sizes_figure": sizes,
    "scenarios.autoscale.fleet_outputs:instances_figure": instances,
    "scenarios.autoscale.capacity_search:capacity_figure": capacities,
    "scenarios.autoscale.seeds_summary:curves_figure": autoscaling_curves,
    "scenarios.job_queue.outputs:cdf_figure": job_times,
    "scenarios.job_queue.outputs:load_figure": mean_times,
    "scenarios.job_queue.outputs:demand_figure": demands,
    "scenarios.job_queue.outputs:nodes_figure": stays,
    "scenarios.job_queue.share_command:share_errors_figure": share_errors,
    "scenarios.train.train_scheduling:policies_figure": policies,
    "scenarios.devices.pictures:server_figure": servers,
    "scenarios.devices.pictures:rules_figure": rules,
    "scenarios.devices.pictures:times_figure": collectives,
    "bench.growth:growth_figure": growths,
}
