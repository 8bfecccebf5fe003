"""The table of targets from the command line, on settings of seconds."""

import json
import re
from dataclasses import replace
from itertools import count

import pandas as pd
import pytest
import torch
from command_output import assert_refused

from agents.decision.run_epochs import run_course
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.policy import LocalArchitecture
from agents.hi_ppo.local.training_policy import LocalPolicy
from agents.hi_ppo.placement.placement_policy import PlacementArchitecture, PlacementPolicy
from agents.hi_ppo.policies import Policies, TrainedRange
from agents.hi_ppo.schedulers import make_fixed_rule_schedulers, policy_scheduler
from agents.replanning.table import SCHEDULERS
from des import read_topology, write_topology
from scenarios.study.targets.command import main
from scenarios.study.targets.fluctuation import LATENCY_JITTER
from scenarios.study.targets.headroom import against_rules, worlds_of
from scenarios.study.targets.local_level import CompletePlanScheduler, local_decisions_s
from scenarios.study.targets.measurement_size import (
    LARGE,
    SchedulerColumn,
    Scope,
    fluctuating,
    on_still_links,
)
from scenarios.study.targets.response_times import timed_decisions
from scenarios.study.targets.sizes import SHORT
from scenarios.study.targets.time_and_utilisation import times_of

TINY = ["--short", "--num-worlds", "1", "--num-epochs", "2", "--trainer", "ideal"]
TINY += ["--figures", ""]


def tiny_column(method="search_h1", **sizes):
    given = {"num_worlds": 1, "num_epochs": 3} | sizes
    return SchedulerColumn(
        name=method, make=SCHEDULERS[method], scope=Scope(sizes=replace(SHORT, **given))
    )


def test_a_table_says_what_is_reached_and_is_the_same_every_time(tmp_path, capsys):
    """A proven optimum has no gap, so the search reaches these targets on any machine."""
    outs = [tmp_path / name for name in ("one", "two")]
    for out in outs:
        flags = [*TINY, "--targets", "time,communication,allocation", "--method", "search_once"]
        assert main([*flags, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    names = ("config.json", "kpi.json", "kpi.csv", "report.html")

    assert all((outs[0] / name).read_bytes() == (outs[1] / name).read_bytes() for name in names)
    assert "too few draws to claim anything" in shown
    assert "* the reference has fewer GPUs" in shown
    rows = pd.read_csv(outs[0] / "kpi.csv").set_index("name")
    assert rows.loc["allocation error", "verdict"] == "quick"  # it is exceeded, on two worlds
    assert rows.loc["training time", "value"] > 0.25
    assert bool(rows.loc["training time", "reference_has_fewer_gpus"])
    table = json.loads((outs[0] / "kpi.json").read_text())
    assert [one["name"] for one in table["columns"]["search_once"]] == rows.index.tolist()
    assert "N/h" in (outs[0] / "report.html").read_text()


def test_a_missed_target_is_printed_as_missed_and_ends_with_1(tmp_path, capsys):
    """Links a thousand times slower: the best plan is one domain, which saves nothing."""
    base = read_topology("east_central_west")
    slow = replace(
        base,
        links=tuple(
            replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s / 1e3)
            for link in base.links
        ),
    )
    path = tmp_path / "slow.yaml"
    write_topology(path, slow)
    flags = [*TINY, "--targets", "time", "--method", "search_once,search_h1"]

    code = main([*flags, "--world", str(path), "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out

    assert code == 1
    assert "missed: training time, utilisation" in shown
    assert "no chain can save 25 %" in shown
    plain = json.loads((tmp_path / "out" / "kpi.json").read_text())
    assert plain["seeds"] is None  # planners are no seeds of one training


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--method", "search_h9"], "unknown name 'search_h9' in method; did you mean"),
        (["--method", "search_h8", "--targets", "tim"], "unknown name 'tim' in targets"),
        (["--method", "search_h8", "--targets", ""], "targets must be one or more"),
        (["--method", "search_h8", "--num-draws", "0"], "num_draws must be at least 1, got 0"),
        (["--method", "search_h8", "--workers", "0"], "workers must be at least 1, got 0"),
        (["--method", "search_h8", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["--method", "search_h8,search_h8"], "must have names of their own"),
        (["--num-domains", "7", "--targets", "time"], "that one of eval_calm, eval_held, hard has"),
        (["--num-domains", "10"], "targets must be time or communication, or both"),
        (["--num-domains", "10", "--targets", "time", "--network", "abc"], "left out with network"),
        (["--num-domains", "10", "--targets", "time", "--sites"], "be left out with sites, got 10"),
        (["--checkpoint", "missing.safetensors"], "missing.safetensors"),
        (["--method", "search_h8", "--world", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_flags_are_one_line(flags, message, tmp_path, capsys):
    out, message = tmp_path / "out", re.escape(message)
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)


def test_no_method_with_the_same_plans_beats_the_clairvoyant():
    column = tiny_column()
    (world,) = column.scope.worlds("eval_held", domains=(4,))

    found = against_rules(column, world, 0)

    assert found.own >= -1e-12
    assert min(found.rules.values()) >= -1e-12
    assert min(found.foreseen.values()) >= -1e-12
    assert found.foreseen.keys() == found.rules.keys() - {"static"}
    assert not found.fixed  # a planner has no policy that proposes
    assert column.episode(world, 0) is column.episode(world, 0)


def test_a_fixed_rule_moves_among_what_the_same_policy_proposes(tmp_path):
    """Where changes cost all but nothing, 16 epochs ahead the quickest proposal is the best one.

    A coordinator without a move policy always takes that.
    """
    (known,) = Scope(sizes=SHORT).worlds("cheap_moves", 1, (4,))
    path = tmp_path / "untrained.safetensors"
    write_policies(path, known, seed=0)
    free = replace(known, replacement=replace(known.replacement, restart_s=0.0))
    make, propose = policy_scheduler(path)
    sizes = replace(SHORT, num_worlds=1, num_epochs=3)
    column = SchedulerColumn(
        name="untrained",
        make=make,
        scope=Scope(sizes=sizes),
        propose=propose,
        fixed_rules=make_fixed_rule_schedulers(path),
    )

    found = against_rules(column, free, 0)

    assert list(found.fixed) == ["H4", "H8", "H16"]
    assert column.episode(free, 0, "H16").plans == column.episode(free, 0).plans
    assert found.fixed["H16"] == found.own


def test_of_the_hard_suite_every_fourth_world_is_large():
    sizes = replace(SHORT, num_worlds=8)

    mixed = worlds_of(Scope(sizes=sizes, seed=3), "hard")
    alone = worlds_of(Scope(sizes=replace(sizes, num_worlds=3), seed=3), "hard")

    assert [one.num_domains == LARGE for one in mixed] == [False, False, False, True] * 2
    assert len({one.name for one in mixed}) == 8
    assert alone == mixed[:3]
    assert all(one.num_domains < LARGE for one in worlds_of(Scope(sizes=sizes), "cheap_moves"))
    assert worlds_of(Scope(sizes=sizes, world=alone[0]), "hard")[0].num_domains < LARGE


def test_worlds_of_ten_domains_are_those_of_the_suite_that_has_such():
    scope = Scope(sizes=SHORT, num_domains=(LARGE,))

    assert not scope.worlds("eval_calm")
    assert scope.worlds("hard") == Scope(sizes=SHORT).worlds("hard", domains=(LARGE,))
    assert scope.worlds("eval_calm", 1, (4,)) == Scope(sizes=SHORT).worlds("eval_calm", 1, (4,))


def test_physics_bounds_every_scheduler():
    column = tiny_column()
    (world,) = column.scope.worlds("hard", domains=(4,))

    times = times_of(column, world, 0)

    assert times.physical_s <= times.least_s <= times.own_s <= times.single_s


def test_other_links_leave_the_load_as_it_is():
    (world,) = Scope(sizes=SHORT).worlds("eval_held", 1, (4,))
    still, moving = on_still_links(world), fluctuating(world, 0.6, LATENCY_JITTER)

    for epoch in (0, 8):
        here, there = still.epoch_topology(3, epoch), moving.epoch_topology(3, epoch)
        assert here.domains == there.domains == world.epoch_topology(3, epoch).domains
        assert here.links == world.topology.links != there.links
        for base, link in zip(here.links, there.links, strict=True):
            ratio = link.bandwidth_bytes_per_s / base.bandwidth_bytes_per_s
            assert 0.4 - 1e-9 <= ratio <= 1.6 + 1e-9
            assert 0.8 - 1e-9 <= link.latency_s / base.latency_s <= 1.2 + 1e-9


def test_as_many_decisions_are_timed_as_asked_for():
    column = tiny_column("search_once", num_decisions=7, timing_budget_s=60.0)
    worlds = column.scope.worlds("hard", domains=(4,))

    decisions = timed_decisions(column, worlds, column.make())

    assert len(decisions) == 7
    assert all(one.wall_s > 0.0 for one in decisions)


def test_timing_ends_with_its_budget_and_counts_one_decision_at_least():
    """A clock that is a second later at every look: decisions of 1 s, each looked at 3 times."""
    ticks = count()
    column = tiny_column("search_once", num_decisions=100, timing_budget_s=7.5)
    worlds = column.scope.worlds("hard", domains=(4,))

    decisions = timed_decisions(
        column, worlds, column.make(), wall_clock=lambda: float(next(ticks)), cpu_clock=lambda: 0.0
    )

    assert [one.wall_s for one in decisions] == [1.0, 1.0, 1.0]


def test_both_levels_are_timed_together():
    """An untrained local agent decides for every domain of each plan behind the scheduler."""
    agent = LocalAgent(policy=LocalPolicy(LocalArchitecture(), torch.Generator().manual_seed(3)))
    column = tiny_column("search_once", num_decisions=3, timing_budget_s=60.0)
    (world,) = column.scope.worlds("hard", domains=(4,))
    both = CompletePlanScheduler(column.make(), agent, seed=0)

    episode = run_course(world, 0, both, num_epochs=2, must_fit=False)
    seconds = local_decisions_s(agent, num_decisions=3, num_warm_up=1, budget_s=60.0, seed=0)

    assert len(seconds) == 3
    for epoch in episode.rows:
        assert 0.0 < epoch.response_s["intra_domain"] < epoch.decision_s
    assert episode.plans == column.episode(world, 0).plans[:2]


def write_policies(path, known, seed):
    """Untrained policies that move to the best plan of each epoch."""
    Policies(
        placement=PlacementPolicy(
            PlacementArchitecture(width=16, edge_width=8, num_rounds=1),
            torch.Generator().manual_seed(seed),
        ),
        moves=None,
        trained_range=TrainedRange.of([(known.topology, known.workload)]),
        training={},
    ).save(path)


def test_checkpoints_are_columns_with_the_seeds_judged_together(tmp_path, capsys):
    """Two untrained policies that always move: what they reach is theirs to learn."""
    (known,) = Scope(sizes=SHORT).worlds("eval_static", 1, (4,))
    paths = [tmp_path / f"seed{seed}.safetensors" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        write_policies(path, known, seed)
    flags = [*TINY, "--targets", "time", "--checkpoint", ",".join(map(str, paths))]

    code = main([*flags, "--num-epochs", "1", "--out", str(tmp_path / "out")])

    plain = json.loads((tmp_path / "out" / "kpi.json").read_text())
    assert code in (0, 1)
    assert list(plain["columns"]) == ["seed0", "seed1"]
    assert plain["seeds"]["target"] == "< 1 %"
    assert "mean over seeds" in capsys.readouterr().out
