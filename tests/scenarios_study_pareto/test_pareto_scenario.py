"""The command that compares fronts: its worlds, its files and its errors."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from command_output import error_of
from small_policies import placement_policy

from agents.decision.situation import Preference
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.proposing import proposing
from agents.planners.pareto.exact_front import exact_front
from agents.planners.pareto.fronts import front_of_figures
from agents.planners.pareto.plan_objectives import (
    TIME_COST_USED_UTILISATION,
    TIME_COST_UTILISATION,
    figures_of_plans,
)
from des import Plan
from scenarios.study.pareto.command import main
from scenarios.study.pareto.fronts import (
    MEDIAN_USD_PER_GB,
    merged,
    metrics_of,
    preference_grid,
    price_worlds,
    priced,
    swept,
)
from scenarios.study.pareto.methods import methods_of

FLAGS = ("--worlds", "1", "--num-domains", "5", "--evaluations", "400", "--tables", "all_gpus")


@pytest.fixture(scope="module")
def world():
    return price_worlds(1, num_domains=(5,))[0]


@pytest.fixture(scope="module")
def reference(world):
    return exact_front(world.topology, world.workload)


def test_prices_are_log_normal_and_the_same_for_a_seed(world):
    prices = np.log([one.price_usd_per_gb for one in priced(world.topology, 1).links])
    many = np.concatenate(
        [
            [math.log(one.price_usd_per_gb) for one in priced(world.topology, seed).links]
            for seed in range(200)
        ]
    )

    assert (
        prices.tolist()
        == np.log([one.price_usd_per_gb for one in priced(world.topology, 1).links]).tolist()
    )
    assert many.mean() == pytest.approx(math.log(MEDIAN_USD_PER_GB), abs=0.05)
    assert many.std() == pytest.approx(0.6, abs=0.03)


def test_worlds_are_those_that_have_a_front():
    worlds = price_worlds(3, num_domains=(5, 6))

    assert {world.topology.num_domains for world in worlds} <= {5, 6}
    assert all(0.4 < world.ratio < 1.1 for world in worlds)
    assert len({world.name for world in worlds}) == 3


def front_of_policy(propose, world, reference):
    """Front of one sweep of a policy, and its distance from the reference."""
    plans = swept(propose)(world, preference_grid()).plans
    figures = figures_of_plans(world.topology, world.workload, plans)
    front = front_of_figures(figures, reference.objectives, num_judged=len(figures))
    return front, metrics_of(front, merged([reference, front]))


def test_a_policy_that_proposes_the_reference_covers_all_of_it(world, reference):
    plans = [one.plan for one in reference.figures]
    asked = []

    def propose(topology, workload, preference):
        asked.append(preference)
        return plans[len(asked) % len(plans) :: len(plans)]

    front, metrics = front_of_policy(propose, world, reference)

    assert tuple(asked) == preference_grid(36)
    assert metrics.coverage == 1.0
    assert metrics.hypervolume_ratio == pytest.approx(1.0)
    assert front.figures == reference.figures


def test_a_policy_that_knows_the_quickest_plan_alone_covers_what_that_does(world, reference):
    quickest = reference.figures[0].plan
    _, metrics = front_of_policy(lambda *_: [quickest], world, reference)

    assert 0.0 < metrics.coverage < 0.5
    assert metrics.num_points == 1


def test_where_more_counts_than_preferences_weigh_a_search_completes_the_sweep(world, reference):
    """From the quickest plan alone on it covers most of the proven front of used GPUs."""
    quickest = reference.figures[0].plan

    plain, complete = (
        methods_of(objectives, seed=0, policies={"policy": lambda *_: [quickest]})["policy"]
        for objectives in (TIME_COST_UTILISATION, TIME_COST_USED_UTILISATION)
    )

    assert plain(world, preference_grid()).plans == (quickest,)
    offered = complete(world, preference_grid()).plans
    assert offered[0] == quickest
    figures = figures_of_plans(world.topology, world.workload, offered)
    front = front_of_figures(figures, TIME_COST_USED_UTILISATION, num_judged=len(figures))
    proven = exact_front(world.topology, world.workload, objectives=TIME_COST_USED_UTILISATION)
    assert metrics_of(front, proven).coverage >= 0.95


def test_preferences_that_ask_for_the_same_plans_begin_with_other_orders():
    """Over all GPUs utilisation is 1/time, so equal preferences are searched twice."""
    (large,) = price_worlds(1, num_domains=(10,))
    propose = proposing(Proposer(placement_policy()))

    def found(utilisation: float) -> list[Plan]:
        preference = Preference(time=0.5 - utilisation, utilisation=utilisation, communication=0.5)
        return list(propose(large.topology, large.workload, preference))

    assert found(0.0) == found(0.0)
    assert found(0.0) != found(0.25)


def test_fronts_merged_with_themselves_stay_as_they_are(reference):
    assert merged([reference, reference]).figures == reference.figures


def test_the_command_writes_what_it_found_and_the_same_again(tmp_path):
    tables = []
    for name in ("one", "other"):
        out = tmp_path / name
        assert main([*FLAGS, "--out", str(out)]) == 0
        metrics = pd.read_csv(out / "metrics.csv").drop(columns="timing_s")
        tables.append((metrics.to_csv(), (out / "points.csv").read_bytes()))
        summary = json.loads((out / "summary.json").read_text())
        assert (out / "fronts.png").stat().st_size > 10_000
        assert (out / "config.json").is_file()

    assert tables[0] == tables[1]
    assert metrics["coverage"].between(0.0, 1.0).all()
    assert metrics["reference_is_proven"].all()
    assert summary["tables"]["all_gpus"]["search_sweep"]["coverage"]["mean"] >= 0.8


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--worlds", "0"), "worlds"),
        (("--num-domains", "7"), "num_domains must be some of"),
        (("--tables", "beauty"), "must be some of all_gpus"),
        (("--preferences", "30"), "such as 28 or 36"),
        (("--tables", "all_gpus,all_gpus"), "each be given once"),
    ],
)
def test_wrong_flags_are_one_line(flags, message, capsys):
    error = error_of(main, flags, capsys)
    assert error.startswith("error: ")
    assert message in error
