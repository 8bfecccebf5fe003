"""Statistics of past epochs that show how long conditions last; no units, no look-ahead."""

import math

import numpy as np

from des.compiled.many.layout import Flags, Real, Whole

WINDOW_EPOCHS = 64
"""Past epochs that statistics are taken over."""

_PRIOR_EPOCHS = 8.0  # as many epochs at base figures count in addition to those seen
_LAGS = (1, 2, 4, 8)
_LEAST_CHANGE, _LARGE_CHANGE = 1e-3, 0.05  # of log costs, mean over the plans
_CONGESTED_FACTORS = (1.25, 2.0)
_MOST_EPOCHS_COUNTED = 24.0  # so that no policy learns when an episode ends

HISTORY_NAMES = (
    "epochs_seen",
    *(f"autocorrelation_{lag}" for lag in _LAGS),
    "mean_change",
    "recent_change",
    "last_change",
    *(
        f"{kind}_{size}"
        for size in ("small", "large")
        for kind in ("share_changed", "epochs_since", "mean_dwell")
    ),
    *(
        f"{kind}_{factor:g}"
        for factor in _CONGESTED_FACTORS
        for kind in ("congested_now", "congested_share", "stays_1", "stays_4")
    ),
    *(f"old_best_regret_{lag}" for lag in _LAGS),
    "static_regret",
    "static_regret_now",
    "best_deviation",
    "best_autocorrelation",
    "best_now",
    "static_now",
)


def expected_costs(relative: Real, base: Real) -> Real:
    """Cost of an iteration of every plan in the long run, (C,), from costs over base seen so far.

    The cost at the mean pace of what was seen, (W, C), and of eight epochs at base figures.
    """
    paces: Real = (1.0 / relative).sum(axis=0)
    return base * (_PRIOR_EPOCHS + len(relative)) / (_PRIOR_EPOCHS + paces)


def history_features(log_relative: Real, log_base: Real) -> Real:
    """Features named `HISTORY_NAMES` of W epochs, the last of them the present one, (W, C).

    Parameters
    ----------
    log_relative
        Logarithms of costs over base.
    log_base
        Logarithms of costs at base figures, (C,).
    """
    log_cost = log_relative + log_base
    best_plan = log_cost.argmin(axis=1)
    best = log_cost[np.arange(len(log_cost)), best_plan]
    static = log_cost[:, int(log_base.argmin())]
    steps = np.abs(np.diff(log_relative, axis=0)).mean(axis=1)
    deviation = log_relative - log_relative.mean(axis=0)
    features = [
        math.log1p(min(float(len(log_relative)), _MOST_EPOCHS_COUNTED)),
        *(autocorrelation(deviation, lag) for lag in _LAGS),
        _mean(steps),
        _mean(steps[-4:]),
        _mean(steps[-1:]),
        *_dwell(steps > _LEAST_CHANGE),
        *_dwell(steps > _LARGE_CHANGE),
    ]
    for factor in _CONGESTED_FACTORS:
        features += _congestion(log_relative > math.log(factor))
    features += [_old_best_regret(log_cost, best_plan, best, lag) for lag in _LAGS]
    features += [
        _mean(static - best),
        float(static[-1] - best[-1]),
        float(best.std()),
        autocorrelation((best - best.mean())[:, np.newaxis], 1),
        float(best[-1]),
        float(static[-1]),
    ]
    return np.array(features)


def autocorrelation(deviation: Real, lag: int) -> float:
    """Autocorrelation of all series together, (W, C), about their means; 0 for too little data."""
    num = len(deviation) - lag
    power = _product(deviation, deviation)
    if num < 2 or power < 1e-12:
        return 0.0
    return _product(deviation[lag:], deviation[:-lag]) / power


def trailing_run(flags: Flags) -> Real:
    """Number of last epochs for which each column has been true without a break, from (W, ...)."""
    run: Real = np.logical_and.accumulate(flags[::-1], axis=0).sum(axis=0).astype(np.float64)
    return run


def _product(one: Real, other: Real) -> float:
    """Sum of all products, without threads, so that it does not depend on their number."""
    return float(np.einsum("wc,wc->", one, other))


def _mean(values: Real) -> float:
    return float(values.sum()) / max(len(values), 1)


def _dwell(changed: Flags) -> list[float]:
    """Share of epochs that changed, epochs since the last change, and mean stay between them."""
    num = len(changed)
    since = float(trailing_run(~changed)) if num else 0.0
    count = float(changed.sum())
    return [count / max(num, 1), math.log1p(since), math.log((num + 1.0) / (count + 1.0))]


def _congestion(congested: Flags) -> list[float]:
    """Share of plans now, share at all times, and chance to be so still in 1 and in 4 epochs."""
    num_plans = congested.shape[1]
    counts = [
        (np.count_nonzero(congested[lag:] & congested[:-lag]), np.count_nonzero(congested[:-lag]))
        for lag in (1, 4)
    ]
    stays = [(still / num_plans + 0.25) / (before / num_plans + 0.5) for still, before in counts]
    now = np.count_nonzero(congested[-1]) / num_plans
    return [now, np.count_nonzero(congested) / congested.size, *stays]


def _old_best_regret(log_cost: Real, best_plan: Whole, best: Real, lag: int) -> float:
    """Mean regret of the best plan of an epoch, ``lag`` epochs later."""
    if len(best) <= lag:
        return 0.0
    later = log_cost[np.arange(lag, len(best)), best_plan[:-lag]]
    return _mean(later - best[lag:])
