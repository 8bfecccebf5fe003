"""Choice of weights and sentence on learning, from figures made by hand."""

import numpy as np
import pandas as pd
import pytest

from agents.hi_ppo.policies import TrainedRange
from scenarios.frame.statistics import MeanInterval
from scenarios.train.east_west.table import block_rows, run_targets
from scenarios.train.east_west.weights import choose_weights
from scenarios.train.east_west.worlds import draw_seeds
from scenarios.train.east_west.worth import METHODS, WorthAgainst, differences_of, worth_sentence

START = np.array([10.0, 20.0, 30.0, 40.0])


def test_weights_that_are_better_by_chance_alone_do_not_replace_the_first():
    """On the mean they are 5 % better, and on one of four episodes 10 % worse."""
    lucky = START * [0.9, 1.1, 0.9, 0.9]

    assert choose_weights(np.array([START, lucky]), keeps_first=True) == 0
    assert choose_weights(np.array([START, lucky]), keeps_first=False) == 1


def test_of_weights_that_are_shown_better_the_best_on_the_mean_are_kept():
    times_s = np.array([START, 0.99 * START, 0.97 * START, START * [0.5, 1.2, 1.0, 1.0]])

    assert choose_weights(times_s, keeps_first=True) == 2


def test_equal_weights_stay_and_one_episode_shows_nothing():
    assert choose_weights(np.array([START, START]), keeps_first=False) == 0
    assert choose_weights(np.array([[10.0], [5.0]]), keeps_first=True) == 0


def test_times_must_be_there():
    with pytest.raises(ValueError, match="times_s must be positive and shaped"):
        choose_weights(np.empty((0, 3)), keeps_first=True)


@pytest.mark.parametrize(
    ("mean", "half_width", "said"),
    [
        (-0.03, 0.01, "Learning was worth 3.00 ± 1.00 % of the time against A."),
        (-0.01, 0.02, "nothing here; no difference is shown against A (-1.00 ± 2.00 %)."),
        (0.0, 0.0, "nothing here; no difference is shown against A (+0.00 ± 0.00 %)."),
        (0.03, 0.01, "nothing here; it took 3.00 ± 1.00 % more time against A."),
    ],
)
def test_the_sentence_is_by_the_interval(mean, half_width, said):
    interval = MeanInterval(mean=mean, half_width=half_width)

    assert worth_sentence([WorthAgainst(other="A", interval=interval)]).endswith(said)


def rows() -> pd.DataFrame:
    """Two blocks of three episodes: the run takes 10 s, others 1 % more each, the clairvoyant 8."""
    factors = {name: 1.0 + 0.01 * place for place, name in enumerate(METHODS)}
    factors["clairvoyant"] = 0.8
    return pd.DataFrame(
        {
            "block": block,
            "draw": draw,
            "method": name,
            "iteration_time_s": 10.0 * (1 + draw) * factor,
            "num_moves": 2,
            "decision_time_s": 0.004,
        }
        for block in ("one", "another")
        for draw in range(3)
        for name, factor in factors.items()
    )


def test_differences_are_paired_and_the_best_rule_is_that_of_each_block():
    found = {one.other: one.interval for one in differences_of(rows())}

    assert found["untrained weights"].mean == pytest.approx(1 / 1.02 - 1)
    assert found["random proposals"].half_width == pytest.approx(0.0, abs=1e-12)
    assert found["the best rule of each block (static, static)"].mean == pytest.approx(1 / 1.05 - 1)


def test_rows_of_the_table_are_in_pairs_with_the_run():
    own, *others = block_rows(rows()[lambda frame: frame["block"] == "one"])

    assert own.excess == pytest.approx(0.25)
    assert own.cells[3] == ""
    assert [one.method for one in (own, *others)] == list(METHODS)
    assert others[0].against_run.mean == pytest.approx(0.01)
    assert others[-1].against_run.mean == pytest.approx(-0.2)


def test_targets_are_judged_by_their_intervals():
    verdicts = [one.verdict for one in run_targets(rows(), "this run", most_over_shipped=0.0)]
    others = [one.verdict for one in run_targets(rows(), "H64", most_over_shipped=0.0)]

    assert verdicts == ["met", "met", "met", "exceeded"]
    assert others == ["missed", "missed", "missed", "exceeded"]


def test_validation_and_evaluation_never_share_a_draw():
    validation, evaluation = draw_seeds("validation", 3, 500), draw_seeds("evaluation", 3, 500)

    assert len({*validation, *evaluation}) == 1000
    assert draw_seeds("evaluation", 3, 2) == evaluation[:2]


def test_a_joined_range_holds_both():
    one = TrainedRange(
        **dict.fromkeys(("num_domains", "num_layers", "num_microbatches"), (3.0, 4.0)),
        **dict.fromkeys(("ratio", "bandwidth_bytes_per_s", "latency_s"), (0.5, 1.0)),
    )
    other = TrainedRange(
        **dict.fromkeys(("num_domains", "num_layers", "num_microbatches"), (2.0, 3.0)),
        **dict.fromkeys(("ratio", "bandwidth_bytes_per_s", "latency_s"), (0.7, 2.0)),
    )

    assert one.joined(other).num_domains == (2.0, 4.0)
    assert one.joined(other).ratio == (0.5, 2.0)
