"""Episodes that a run folder holds are not judged again, for the same weights and factors."""

import pandas as pd
import pytest

from agents.hi_ppo.policies import shipped
from des import NO_CORRECTIONS, Corrections
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import suite
from scenarios.train.east_west.episodes import Contender, episode_cases
from scenarios.train.east_west.kept_episodes import judged_once

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
    cases = episode_cases(WORLDS, (5, 9), NO_CORRECTIONS)
    first, second, third = Counting(ends_at=3), Counting(), Counting()

    with pytest.raises(KeyboardInterrupt):
        judged_once(first, contenders, cases, folder, map)
    rows = judged_once(second, contenders, cases, folder, map)
    again = judged_once(third, contenders, cases, folder, map)

    assert (second.num_judged, third.num_judged) == (2, 0)
    whole = pd.concat(rows, ignore_index=True)
    assert whole["time_s"].tolist() == [0.5, 0.1 * 9, 0.5, 0.1 * 9]
    assert whole["block"].tolist() == ["own law"] * 2 + ["congestion and load"] * 2
    pd.testing.assert_frame_equal(pd.concat(again, ignore_index=True), whole)


def test_other_factors_or_weights_are_other_episodes(tmp_path):
    folder, judge = RunFolder.create(tmp_path / "run"), Counting()
    contenders = (Contender(name="a", file=shipped()),)
    slow = Corrections(wan_bandwidth_factor=0.5)

    judged_once(judge, contenders, episode_cases(WORLDS, (5,), NO_CORRECTIONS), folder, map)
    judged_once(judge, contenders, episode_cases(WORLDS, (5,), slow), folder, map)
    untrained = (Contender(name="a", file=shipped(), control="untrained"),)
    judged_once(judge, untrained, episode_cases(WORLDS, (5,), slow), folder, map)

    assert judge.num_judged == 6
