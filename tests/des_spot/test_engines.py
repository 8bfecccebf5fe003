"""Both engines of a job on sites that come and go."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spot_cases import RandomChoice, course_of, drawn_world, set_offers

from des.spot.batch import SpotBatch, run_spot_batch
from des.spot.engine import run_spot
from des.spot.offers import FAILURES_PER_GPU_S, Offers, StateSizes, checkpoint_period_s
from des.spot.world import NOTHING, SpotHistory, SpotView, SpotWorld


class Always:
    """Asks for one offer whatever happens."""

    def __init__(self, offer: int) -> None:
        self._offer = offer

    def choose(self, view: SpotView) -> np.ndarray:
        """Return the offer for each world."""
        return np.full(len(view.held), self._offer)


def _plain(**changed: object) -> Offers:
    """One offer of one site: 10 tokens/s, a checkpoint of 5 s after each 95 s of work."""
    figures: dict[str, object] = {
        "names": ("a",),
        "needs": np.array([[True]]),
        "tokens_per_s": np.array([10.0]),
        "move_s": np.array([[30.0], [90.0]]),
        "checkpoint_s": np.array([5.0]),
        "period_s": np.array([95.0]),
        "failures_per_s": np.array([0.0]),
        "usd_per_s": np.array([0.01]),
    }
    return Offers(**{**figures, **changed})  # type: ignore[arg-type]


def _run(rows: list[int], offers: Offers, notice_s: float) -> SpotHistory:
    course = course_of([[row] for row in rows], tick_s=100.0)
    world = SpotWorld(course=course, offers=offers, notice_s=notice_s, ticks_per_decision=1)
    history = run_spot(world, Always(0), 0)
    assert run_spot_batch([world], Always(0), [0]) == [history]
    return history


def test_a_run_by_hand() -> None:
    """Start 90 s, so 10 s of 95 % work; then 95 s; a loss without notice; a resumption of 30 s.

    Work of 9.5 + 95 s has one whole period of 95 s in it, so 9.5 s are lost.
    """
    history = _run([1, 1, 0, 1], _plain(), notice_s=0.0)

    assert history.worked_s == pytest.approx(9.5 + 95.0 + 0.95 * 70.0)
    assert history.lost_s == pytest.approx(9.5)
    assert history.tokens == pytest.approx(10.0 * (95.0 + 66.5))
    assert (history.held_s, history.num_moves, history.num_losses) == (300.0, 2, 1)
    assert history.usd == pytest.approx(3.0)
    assert history.effective_time_ratio == pytest.approx(161.5 / 400.0)


@pytest.mark.parametrize(("notice_s", "lost_s"), [(4.9, 9.5), (5.0, 0.0), (120.0, 0.0)])
def test_a_notice_saves_work_if_a_checkpoint_fits_into_it(notice_s: float, lost_s: float) -> None:
    """A checkpoint takes 5 s."""
    assert _run([1, 1, 0, 0], _plain(), notice_s).lost_s == pytest.approx(lost_s)


def test_a_sure_failure_loses_the_work_since_the_checkpoint() -> None:
    """One failure in each tick of work: after it, a restart of 30 s."""
    offers = _plain(failures_per_s=np.array([1.0]), period_s=np.array([1e6]))

    history = _run([1, 1, 1], offers, notice_s=0.0)

    assert (history.num_failures, history.tokens) == (3, 0.0)
    assert history.lost_s == history.worked_s


def test_a_site_that_is_down_refuses_and_costs_nothing() -> None:
    """What is asked for in vain is not held."""
    history = _run([0, 0, 0], _plain(), notice_s=0.0)

    assert (history.num_refused, history.held_s, history.tokens) == (3, 0.0, 0.0)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    salt=st.integers(0, 1000),
    notice_s=st.sampled_from([0.0, 30.0, 120.0, 1e4]),
    between=st.integers(1, 6),
    sees_all=st.booleans(),
)
def test_both_engines_are_equal(
    seed: int, salt: int, notice_s: float, between: int, sees_all: bool
) -> None:
    """To the last bit, with failures a hundred times as likely as published."""
    world = drawn_world(seed, 200, notice_s=notice_s, ticks_per_decision=between, sees_all=sees_all)
    policy = RandomChoice(7, salt)

    assert run_spot_batch([world], policy, [seed]) == [run_spot(world, policy, seed)]


def test_views_of_both_engines_are_equal() -> None:
    """Whatever a policy sees, at every decision."""
    world, seen = drawn_world(3, 300, sees_all=False), list[SpotView]()

    class Notes(RandomChoice):
        def choose(self, view: SpotView) -> np.ndarray:
            seen.append(view)
            return super().choose(view)

    policy = Notes(7)
    run_spot(world, policy, 0)
    half = len(seen)
    run_spot_batch([world], policy, [0])

    assert len(seen) == 2 * half
    for one, other in zip(seen[:half], seen[half:], strict=True):
        for name in SpotView.__dataclass_fields__:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_batch_does_what_its_jobs_do_alone() -> None:
    """Neighbours and longer courses change nothing."""
    worlds = [drawn_world(seed, 100 + 50 * seed) for seed in range(4)]
    policy = RandomChoice(7)

    together = run_spot_batch(worlds, policy, range(4))

    alone = [run_spot_batch([world], policy, [seed])[0] for seed, world in enumerate(worlds)]
    assert together == alone


def test_only_what_is_held_or_asked_for_is_seen() -> None:
    """Of three sites a job asks for the first alone."""
    batch = SpotBatch([drawn_world(0, sees_all=False)], [0], [0])
    for _ in range(5):
        batch.advance(np.array([0]))

    assert np.isfinite(batch.view().seen_s).tolist() == [[True, False, False]]


def test_offers_out_of_range_are_refused() -> None:
    """By either engine, with the range."""
    world = drawn_world(0, 10)
    with pytest.raises(ValueError, match="offer must be from -1 to 6, got 7"):
        run_spot(world, Always(7), 0)
    with pytest.raises(ValueError, match="offers must be 1 numbers from -1 to 6"):
        SpotBatch([world], [0], [0]).advance(np.array([-2]))


def test_period_of_checkpoints_has_the_least_overhead() -> None:
    """Daly's total time is least near his period: 10 % more or less costs more."""
    write_s, mean_s, restart_s = 60.0, 4 * 3600.0, 120.0

    def overhead(period_s: float) -> float:
        """Wall clock over work (Daly 2006, equation 13)."""
        tries = math.exp(restart_s / mean_s) * (math.exp((period_s + write_s) / mean_s) - 1)
        return mean_s * tries / period_s

    best_s = checkpoint_period_s(write_s, 1 / mean_s)
    assert overhead(best_s) < min(overhead(0.9 * best_s), overhead(1.1 * best_s))
    assert checkpoint_period_s(2e5, 1 / mean_s) == mean_s


def test_published_failures_are_those_of_llama_3() -> None:
    """One in 3.1 hours on 16,384 GPUs."""
    assert pytest.approx(3.093, abs=1e-3) == 1 / (16384 * FAILURES_PER_GPU_S * 3600)


def test_moves_by_hand() -> None:
    """Halves of 100 GB on two sites with links of 1 GB/s and storage of 2 GB/s; restart 10 s.

    From one site to both the other site lacks 50 GB (50 s over the link); both read halves (25 s).
    With a standby copy there, nothing is sent. In place and from outside it is reading alone.
    """
    sizes = StateSizes(
        state_bytes=100e9,
        storage_bytes_per_s=np.full(2, 2e9),
        link_bytes_per_s=np.full((2, 2), 1e9),
        restart_s=10.0,
    )
    shares = np.array([[1.0, 0.0], [0.5, 0.5]])

    held = np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 1.0], [0.0, 0.0]])

    moves_s = sizes.move_s(held, shares).tolist()
    assert moves_s == [[60.0, 85.0], [110.0, 35.0], [60.0, 35.0], [60.0, 35.0]]
    assert sizes.checkpoint_s(shares).tolist() == [50.0, 25.0]


def test_a_run_is_worth_no_more_than_all_sites_all_the_time() -> None:
    """Conservation: time held is at work, moving, or lost; tokens follow."""
    world = drawn_world(5, 800)

    history = run_spot(world, RandomChoice(7), 5)

    assert 0 <= history.lost_s <= history.worked_s <= history.held_s <= history.duration_s
    most = set_offers().kept_tokens_per_s.max() * history.worked_s
    assert 0 < history.tokens <= most


def test_bad_offers_are_named() -> None:
    """Field, what is allowed, what came."""
    with pytest.raises(ValueError, match="offers: tokens_per_s must be positive"):
        _plain(tokens_per_s=np.array([0.0]))
    with pytest.raises(ValueError, match=r"offers: move_s must be \(2, 1\)"):
        _plain(move_s=np.zeros((1, 1)))
    with pytest.raises(ValueError, match="offers: needs must name at least one site"):
        _plain(needs=np.array([[False]]))
    assert NOTHING == -1
