"""Figures of trainings: they hold the numbers of the log, and equal input gives equal bytes."""

import io

import numpy as np
import pytest
from evaluations import evaluation, metrics
from matplotlib.image import imread

from des.figures.marks import GuideLine, Line, Points
from des.figures.paper import image_bytes
from scenarios.frame.plots import comparison_bars, learning_curve, seed_curves


def pixels(png: bytes) -> np.ndarray:
    return imread(io.BytesIO(png), format="png")


def marks(figure, panel, kind):
    return [mark for mark in figure.panels[panel].marks if isinstance(mark, kind)]


def test_a_learning_curve_shows_the_columns_and_the_references():
    """The lines hold exactly the numbers of the log; each reference is a line with its name."""
    figure = learning_curve(metrics(), {"uniform": 18.0, "exact": 12.0})

    (rewards,), (times,) = (marks(figure, panel, Line) for panel in (0, 1))
    assert rewards.x == tuple(metrics()["step"])
    assert rewards.y == tuple(metrics()["mean_reward"])
    assert times.y == tuple(metrics()["mean_iteration_time_s"])
    rules = marks(figure, 1, GuideLine)
    assert [(rule.label, rule.y) for rule in rules] == [
        ("exact 12 s", 12.0),
        ("uniform 18 s", 18.0),
    ]


@pytest.mark.parametrize(("slowest_s", "scale"), [(18.0, "linear"), (500.0, "log")])
def test_times_far_apart_have_a_logarithmic_axis(slowest_s, scale):
    assert learning_curve(metrics(), {"a": 12.0, "z": slowest_s}).panels[1].y.scale == scale


def test_bars_are_the_means_in_order_with_a_point_per_draw():
    """exact 11 s, ppo 12.1 s, uniform 16.5 s, three points each, intervals by hand."""
    figure = comparison_bars(evaluation())
    draws, means = marks(figure, 0, Points)

    assert means.x == pytest.approx((11.0, 12.1, 16.5))
    assert [text for _, text in figure.panels[0].y.ticks] == ["exact", "ppo", "uniform"]
    assert draws.x[:3] == pytest.approx((10.0, 11.0, 12.0))
    # t(2) = 4.3027 times the standard error 1 / sqrt(3)
    assert means.x_half_widths[0] == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert "exact: 11 ± 2.5" in figure.seen


def test_the_band_over_seeds_is_their_interval():
    """Two seeds 1 s apart: the mean between them, t(1) = 12.706 times half a second."""
    later = metrics().assign(mean_iteration_time_s=metrics()["mean_iteration_time_s"] + 1.0)
    figure = seed_curves({"a": metrics(), "b": later}, title="Seeds")

    *seeds, mean = marks(figure, 1, Line)

    assert len(seeds) == 2
    assert np.subtract(mean.y, seeds[0].y) == pytest.approx(0.5)
    assert np.subtract(mean.high, mean.y) == pytest.approx(12.706 * 0.5, rel=1e-3)


def test_a_single_draw_and_a_single_update_can_be_drawn():
    """The first update of a run, one draw, no references."""
    assert image_bytes(learning_curve(metrics()[:1], {})).startswith(b"\x89PNG")
    figure = comparison_bars(evaluation()[lambda frame: frame["draw"] == 0])
    assert "exact: 10;" in figure.seen
    assert image_bytes(figure).startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes():
    """Rendered twice, and drawn again; no software version or time inside."""
    figure = learning_curve(metrics(), {"exact": 12.0})
    content = image_bytes(figure)

    assert image_bytes(figure) == content
    assert image_bytes(learning_curve(metrics(), {"exact": 12.0})) == content
    assert image_bytes(comparison_bars(evaluation())) == image_bytes(comparison_bars(evaluation()))
    assert b"Software" not in content
    assert b"tEXt" not in content


def test_other_numbers_give_another_picture():
    """The bytes are equal because the input is, not because nothing is drawn."""
    one = pixels(image_bytes(comparison_bars(evaluation())))
    other = pixels(image_bytes(comparison_bars(evaluation()[lambda frame: frame["draw"] > 0])))

    assert one.shape == other.shape
    assert (one != other).any()
    assert len(np.unique(one.reshape(-1, one.shape[2]), axis=0)) > 10


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: learning_curve(metrics()[["step"]], {}), "metrics must have the columns mean_rew"),
        (lambda: learning_curve(metrics()[:0], {}), "metrics must have rows"),
        (lambda: comparison_bars(evaluation()[["draw"]]), "must have the columns planner, iter"),
        (lambda: comparison_bars(evaluation()[:0]), "evaluation must have rows"),
    ],
)
def test_a_table_without_what_a_figure_needs_is_refused(draw, message):
    """The message names the table and what it lacks."""
    with pytest.raises(ValueError, match=message):
        draw()
