"""The command that measures robustness, and the notebook that shows it."""

import json

import numpy as np
import pandas as pd
import pytest
from command_output import error_of

from agents.hi_ppo.schedulers import make_shared_scheduler
from agents.planners.table import PLANNERS
from des import InfeasiblePlacementError, Placement, Plan, simulate
from scenarios.frame.files import read_csv
from scenarios.study.robustness.command import main
from scenarios.study.robustness.curves import (
    COLUMNS,
    STILL,
    Study,
    Swing,
    means_of,
    perturb_links,
    planner_names,
    relative_times,
    robustness_rows,
)
from scenarios.study.targets.fluctuation import LATENCY_JITTER
from scenarios.study.targets.measurement_size import fluctuating
from scenarios.suites import suite

TINY = ("--num-worlds", "1", "--num-epochs", "2", "--fluctuations", "0,0.5", "--jitters", "0,0.4")
NUM_EPOCHS = 3
WORLD = suite("eval_held").with_domains(4).world(3)
"""Llama 2 13B in 40 layers."""


def study_of(planner, *swings: Swing) -> Study:
    return Study(
        held={"one": planner},
        schedulers={},
        swings=swings or (STILL,),
        num_draws=1,
        num_epochs=NUM_EPOCHS,
    )


def alone(problem, rng) -> Plan:
    """All layers in the first domain, where links do not matter."""
    return problem.plan(Placement.contiguous([0], [problem.workload.num_layers]), "1f1b")


def all_over(problem, rng) -> Plan:
    num_domains = problem.topology.num_domains
    counts = [len(part) for part in np.array_split(range(problem.workload.num_layers), num_domains)]
    return problem.plan(Placement.contiguous(range(num_domains), counts), "1f1b_4x")


def test_the_same_flags_write_the_same_files(tmp_path, capsys):
    flags = [*TINY, "--planners", "search_once,atlas_h8,uniform", "--seed", "1"]
    for name in ("one", "other"):
        assert main([*flags, "--out", str(tmp_path / name)]) == 0
    for name in ("robustness.csv", "robustness.json", "robustness.png"):
        one, other = ((tmp_path / each / name).read_bytes() for each in ("one", "other"))
        assert one == other

    rows = read_csv(tmp_path / "one" / "robustness.csv")
    assert set(rows["method"]) >= {"search_once", "atlas_h8", "uniform"}
    still = rows[(rows["fluctuation"] == 0.0) & (rows["jitter"] == 0.0)]
    assert len(still) == rows["method"].nunique()
    assert (still["slowdown"] == 0.0).all()
    summary = json.loads((tmp_path / "one" / "robustness.json").read_text())
    assert len(summary["curves"]) == len(rows)  # of a single world and draw
    assert summary["has_policy"] == (make_shared_scheduler() is not None)
    assert ("hi_ppo is left out" in capsys.readouterr().out) != summary["has_policy"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--fluctuations", "0,1"], "fluctuations must be one or more from 0 to below 1"),
        (["--jitters", "0.2,0.2"], "jitters must be one or more from 0 to below 1, each once"),
        (["--jitters", "nan"], "jitters must be"),
        (["--num-worlds", "0"], "num_worlds must be at least 1, got 0"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--suite", "hard"], "suite must be one of eval_calm, eval_held, got 'hard'"),
        (["--planners", "atlass"], "unknown name 'atlass' in planners; did you mean"),
        (["--checkpoint", "none.safetensors"], "checkpoint none.safetensors: must be an intact"),
    ],
)
def test_bad_flags_are_one_line(tmp_path, capsys, flags, message):
    assert message in error_of(main, [*flags, "--out", str(tmp_path / "run")], capsys)
    assert not (tmp_path / "run").exists()


def test_a_plan_that_sends_nothing_has_a_flat_curve():
    """Whatever the links do, it takes as long as on held ones under the same load."""
    swings = [Swing(fluctuation=at, jitter=at) for at in (0.3, 0.6)]
    rows, left_out = robustness_rows(study_of(alone, *swings), [WORLD])

    assert (len(rows), left_out) == (2, [])
    assert (rows["slowdown"] == 0.0).all()
    assert rows["total_s"].nunique() == 1


def test_totals_are_those_of_iterations_on_the_networks_of_the_epochs():
    """Simulated one by one by the other simulator, on the same draws."""
    swing = Swing(fluctuation=0.6, jitter=0.2)
    rows, _ = robustness_rows(study_of(all_over, swing), [WORLD])
    plan = Plan(placement=Placement.contiguous(range(4), [10] * 4), schedule="1f1b_4x")
    totals_s = [
        NUM_EPOCHS**2
        * WORLD.iterations_per_epoch
        / sum(
            1.0 / simulate(world.epoch_topology(0, epoch), world.workload, plan).makespan_s
            for epoch in range(NUM_EPOCHS)
        )
        for world in (perturb_links(WORLD, swing), perturb_links(WORLD, STILL))
    ]

    assert rows["total_s"].item() == pytest.approx(totals_s[0], rel=1e-12)
    assert rows["slowdown"].item() == pytest.approx(totals_s[0] / totals_s[1] - 1.0, rel=1e-9)
    assert rows["slowdown"].item() > 0.01


def test_the_links_swing_as_those_of_the_targets_do():
    swing = Swing(fluctuation=0.4, jitter=LATENCY_JITTER)

    assert perturb_links(WORLD, swing) == fluctuating(WORLD, 0.4, LATENCY_JITTER)
    assert perturb_links(WORLD, STILL).epoch_topology(3, 5).links == WORLD.topology.links


def test_the_load_takes_the_same_course_whatever_the_links_do():
    still, moving = (perturb_links(WORLD, Swing(fluctuation=at, jitter=0.0)) for at in (0.0, 0.5))

    for epoch in (0, 8, 16):
        assert still.epoch_topology(2, epoch).domains == moving.epoch_topology(2, epoch).domains
    assert still.epoch_topology(2, 0).domains != still.epoch_topology(2, 8).domains


def test_swings_scale_the_same_draws():
    """A bandwidth that is a tenth below base at 20 % is a fifth below at 40 %."""
    base = np.array([link.bandwidth_bytes_per_s for link in WORLD.topology.links])
    at_20, at_40 = (
        np.array(
            [
                link.bandwidth_bytes_per_s
                for link in perturb_links(WORLD, Swing(fluctuation=at, jitter=0.0))
                .epoch_topology(1, 0)
                .links
            ]
        )
        for at in (0.2, 0.4)
    )

    np.testing.assert_allclose(at_40 / base - 1.0, 2.0 * (at_20 / base - 1.0), rtol=1e-9)


def test_planners_without_a_plan_are_left_out_by_name_and_reason():
    def refuses(problem, rng):
        raise InfeasiblePlacementError("refuses: all domains are full")

    rows, left_out = robustness_rows(study_of(refuses), [WORLD])

    assert rows.empty
    assert [(one.method, one.world, one.why) for one in left_out] == [
        ("one", WORLD.name, "refuses: all domains are full")
    ]


def test_plans_that_do_not_fit_are_left_out():
    full = suite("eval_held").with_domains(4).world(0)  # GPT-3 in one domain

    rows, left_out = robustness_rows(study_of(alone), [full])
    assert rows.empty
    assert left_out[0].why == "its plan does not fit into memory"


def test_means_are_over_worlds_by_hand():
    """Worlds of draws (1, 3) and (4, 6) have means 2 and 5: 3.5 +- 12.706 * 1.5."""
    values = {("a", 0): 1.0, ("a", 1): 3.0, ("b", 0): 4.0, ("b", 1): 6.0}
    frame = pd.DataFrame(
        [("one", 0.1, 0.0, world, draw, value) for (world, draw), value in values.items()],
        columns=["method", "fluctuation", "jitter", "world", "draw", "slowdown"],
    )
    means = means_of(frame)

    assert means["mean"].item() == 3.5
    assert means["half_width"].item() == pytest.approx(12.7062 * 1.5, rel=1e-5)
    assert means["num_worlds"].item() == 2


def test_all_baselines_have_a_name_and_some_plan_anew():
    assert {*PLANNERS, "search_once", "search_h8", "atlas_h8"} <= set(planner_names())


def test_times_are_over_those_of_one_method_on_still_links():
    """Two methods on one world: b takes twice as long as a, and both a half longer when moving."""
    rows = [
        (name, fluctuation, 0.0, "w", 0, 0.0, factor * (1.0 + fluctuation))
        for name, factor in (("a", 10.0), ("b", 20.0))
        for fluctuation in (0.0, 0.5)
    ]

    table = relative_times(pd.DataFrame(rows, columns=list(COLUMNS)), "a")

    assert table.loc["a"].tolist() == [1.0, 1.5]
    assert table.loc["b"].tolist() == [2.0, 3.0]
