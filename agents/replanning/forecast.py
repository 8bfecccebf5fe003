"""Planners that plan on the bandwidths that they expect, from those that they have seen."""

from collections.abc import Callable
from functools import partial

import numpy as np

from agents.decision.levels import level_of
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.situation import Decision, Situation
from agents.replanning.payoff import pays, reachable_iteration_s
from des import InfeasiblePlacementError, Plan, UnreachableError
from des.base.checks import require_count
from des.compiled.simulate import simulate_compiled
from des.simulation.migration import migration_s

Forecast = Callable[[np.ndarray], np.ndarray]
"""Bandwidths to plan on, (links,), from those of all epochs so far, (epochs, links)."""

FEWEST_FOR_FIT = 4
"""Epochs seen before an autoregression is fitted: two unknowns from three steps at least."""

_ROUNDING = 1e-9
"""Tolerance of the fit of a steadily growing course, whose coefficient is 1."""


class ForecastScheduler:
    """Asks a planner every epoch, on the network as it is but with the bandwidths of a forecast.

    A new plan is taken if it pays over the horizon (`agents.replanning.payoff.pays`): iteration
    times are those on the network of the forecast, the move is over the links as they are now.
    Where the planner finds nothing that fits, the last plan stays, as a fallback.

    Parameters
    ----------
    horizon_epochs
        Number of epochs, this one included, for which a plan is expected to stay.
    schedules
        Schedules to choose from; none given means 1F1B.
    """

    def __init__(
        self,
        planner: Planner,
        forecast: Forecast,
        *,
        horizon_epochs: int = 8,
        schedules: tuple[str, ...] = (),
    ) -> None:
        require_count("forecast", "horizon_epochs", horizon_epochs)
        self._planner, self._forecast, self._horizon_epochs = planner, forecast, horizon_epochs
        self._schedules = schedules
        self.begin()

    def begin(self) -> None:
        """Forget the networks that were seen."""
        self._seen: list[np.ndarray] = []
        self._rng = np.random.default_rng(0)

    def decide(self, situation: Situation) -> Decision:
        """Note the bandwidths of now, and return the plan for those that are expected.

        Raises
        ------
        InfeasiblePlacementError
            From the planner, where there is no last plan.
        """
        topology = situation.topology
        now = np.array([link.bandwidth_bytes_per_s for link in topology.links])
        self._seen.append(now)
        expected = self._forecast(np.array(self._seen))
        problem = PlanningProblem(
            topology=topology.scaled(expected / now, np.ones(len(now))),
            workload=situation.workload,
            schedules=self._schedules,
            simulator=simulate_compiled,
            corrections=situation.corrections,
            last_plan=situation.last_plan,
        )
        last = situation.last_plan
        try:
            plan = self._planner(problem, self._rng)
        except InfeasiblePlacementError:
            if last is None:
                raise
            return Decision(plan=last, level="nothing", is_fallback=True)
        if last is not None and not self._pays(situation, problem, last, plan):
            plan = last
        return Decision(plan=plan, level=level_of(last, plan))

    def _pays(self, situation: Situation, problem: PlanningProblem, last: Plan, plan: Plan) -> bool:
        if plan == last:
            return False
        new_s, last_s = (reachable_iteration_s(problem, each) for each in (plan, last))
        horizon_s = self._horizon_epochs * situation.epoch_s
        return pays(_move_s(situation, last, plan), new_s, last_s, horizon_s)


def on_ar1_forecast(
    planner: Planner, *, horizon_epochs: int = 8, schedules: tuple[str, ...] = ()
) -> ForecastScheduler:
    """Plan on the bandwidth that an autoregression expects over the horizon, see `ar1_bandwidths`.

    A horizon of one epoch is the network as it is.
    """

    def forecast(seen: np.ndarray) -> np.ndarray:
        return ar1_bandwidths(seen, horizon_epochs)

    return ForecastScheduler(planner, forecast, horizon_epochs=horizon_epochs, schedules=schedules)


def mean_bandwidths(seen: np.ndarray) -> np.ndarray:
    """Mean over epochs, (links,), of bandwidths shaped (epochs, links)."""
    mean: np.ndarray = seen.mean(axis=0)
    return mean


def worst_bandwidths(seen: np.ndarray) -> np.ndarray:
    """Least over epochs, (links,), of bandwidths shaped (epochs, links)."""
    worst: np.ndarray = seen.min(axis=0)
    return worst


on_mean = partial(ForecastScheduler, forecast=mean_bandwidths)
"""Plans on the mean bandwidth of every link so far."""

on_worst_case = partial(ForecastScheduler, forecast=worst_bandwidths)
"""Plans on the least bandwidth of every link so far."""


def ar1_bandwidths(seen: np.ndarray, num_epochs: int) -> np.ndarray:
    """Geometric mean of the bandwidths expected from the present epoch on, (links,).

    Parameters
    ----------
    seen
        Bandwidths of the epochs so far, the present one last, (epochs, links). [bytes/s]
    num_epochs
        Epochs to look at, the present one included, whose bandwidths are known.

    Notes
    -----
    Per link ``x_t = a + b x_(t-1) + noise`` for the logarithms ``x``, fitted by least squares over
    all steps seen. In ``h`` epochs ``mu + b^h (x - mu)`` is expected, ``mu = a / (1 - b)``; the
    mean of that over ``h = 0 .. n - 1`` is the answer. A link of which fewer than `FEWEST_FOR_FIT`
    epochs were seen, that has not moved, or whose fit does not return to a mean (``|b| >= 1``) is
    expected to stay as it is.

    Examples
    --------
    Logarithms 8, 4, 2, 1 halve with every epoch, so ``a = 0`` and ``b = 1/2``; the next would be
    1/2, and the mean of 1 and 1/2 is 3/4:

    >>> seen = np.exp([[8.0], [4.0], [2.0], [1.0]])
    >>> np.round(np.log(ar1_bandwidths(seen, 2)), 9).tolist()
    [0.75]
    """
    require_count("forecast", "num_epochs", num_epochs)
    logs = np.log(seen)
    now = logs[-1]
    expected = now.copy()
    if len(logs) < FEWEST_FOR_FIT:
        present: np.ndarray = seen[-1].copy()
        return present
    before, after = logs[:-1], logs[1:]
    apart = before - before.mean(axis=0)
    spread = (apart**2).sum(axis=0)
    for link in np.flatnonzero(np.ptp(before, axis=0) > 0.0).tolist():
        slope = float(apart[:, link] @ after[:, link] / spread[link])
        if abs(slope) < 1.0 - _ROUNDING:
            offset = after[:, link].mean() - slope * before[:, link].mean()
            mean = offset / (1.0 - slope)
            weight = np.mean(slope ** np.arange(num_epochs))
            expected[link] = mean + weight * (now[link] - mean)
    bandwidths: np.ndarray = np.exp(expected)
    return bandwidths


def _move_s(situation: Situation, last: Plan, plan: Plan) -> float:
    """Time of a move now; infinite where no path joins the domains concerned. [s]"""
    try:
        return migration_s(
            situation.topology,
            situation.workload,
            last,
            plan,
            restart_s=situation.replacement.restart_s,
            pays_bytes=situation.replacement.pays_bytes,
            corrections=situation.corrections,
        )
    except UnreachableError:
        return np.inf
