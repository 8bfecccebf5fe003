"""Episodes that a run folder holds are not judged again, for the same weights and factors."""

from dataclasses import replace
from threading import current_thread, main_thread

import pandas as pd
import pytest

from agents.decision.situation import TIME_ONLY
from agents.hi_ppo.policies import Policies, shipped
from des import NO_CORRECTIONS, Corrections
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import suite
from scenarios.train.east_west.episodes import Contender, episode_cases, judge_once, judged_rows
from scenarios.train.east_west.training import CANDIDATES
from scenarios.train.east_west.weights import judge_meanwhile, keep_best

WORLDS = {"own law": suite("eval_held").world(0), "congestion and load": suite("hard").world(0)}


class Counting:
    """A judge that counts its episodes."""

    def __init__(self, ends_at=99):
        self.num_judged, self._ends_at = 0, ends_at

    def __call__(self, case):
        self.num_judged += 1
        if self.num_judged == self._ends_at:
            raise KeyboardInterrupt
        return [{"block": case.block, "draw": case.draw, "time_s": 0.1 * case.draw_seed}]


def test_a_run_that_is_cut_off_judges_what_is_missing(tmp_path):
    folder, contenders = RunFolder.create(tmp_path / "run"), (Contender(name="a", file=shipped()),)
    cases = episode_cases(WORLDS, (5, 9), NO_CORRECTIONS, TIME_ONLY)
    first, second, third = Counting(ends_at=3), Counting(), Counting()

    with pytest.raises(KeyboardInterrupt):
        judge_once(first, contenders, cases, folder, map)
    rows = judge_once(second, contenders, cases, folder, map)
    again = judge_once(third, contenders, cases, folder, map)

    assert (second.num_judged, third.num_judged) == (2, 0)
    whole = pd.concat(rows, ignore_index=True)
    assert whole["time_s"].tolist() == [0.5, 0.1 * 9, 0.5, 0.1 * 9]
    assert whole["block"].tolist() == ["own law"] * 2 + ["congestion and load"] * 2
    pd.testing.assert_frame_equal(pd.concat(again, ignore_index=True), whole)


def test_other_factors_or_weights_are_other_episodes(tmp_path):
    folder, judge = RunFolder.create(tmp_path / "run"), Counting()
    contenders = (Contender(name="a", file=shipped()),)
    slow = Corrections(wan_bandwidth_factor=0.5)

    judge_once(
        judge, contenders, episode_cases(WORLDS, (5,), NO_CORRECTIONS, TIME_ONLY), folder, map
    )
    judge_once(judge, contenders, episode_cases(WORLDS, (5,), slow, TIME_ONLY), folder, map)
    untrained = (Contender(name="a", file=shipped(), control="untrained"),)
    judge_once(judge, untrained, episode_cases(WORLDS, (5,), slow, TIME_ONLY), folder, map)

    assert judge.num_judged == 6


def test_contenders_that_decide_alike_are_judged_once():
    """So even their decision times, which are wall times, are equal; other weights have others."""
    world = suite("eval_held").world(0)
    case = episode_cases(
        {"own law": replace(world, num_epochs=2)}, (5,), NO_CORRECTIONS, TIME_ONLY
    )[0]
    names = {"this run": shipped(), "hi_ppo-0": shipped(), "hi_ppo-1": shipped(1)}
    contenders = [Contender(name=name, file=file) for name, file in names.items()]

    rows = {str(row.pop("method")): row for row in judged_rows(contenders, case)}

    assert rows["this run"] == rows["hi_ppo-0"] != rows["hi_ppo-1"]


def test_placements_judged_meanwhile_are_not_judged_again(tmp_path):
    folder, start = RunFolder.create(tmp_path / "run"), Policies.load(shipped())
    cases = episode_cases({"own law": suite("eval_held").world(0)}, (5,), NO_CORRECTIONS, TIME_ONLY)
    judged = []

    def at_work(function, items):
        for _ in items:
            judged.append(current_thread() is main_thread())
            yield [{"cost": 2.0}]

    (folder.path / CANDIDATES).mkdir()
    with judge_meanwhile(start, folder, cases, at_work) as wait:
        wait()
    keep_best(start, folder, cases, at_work, is_trained=True)

    assert judged == [False]
