"""Transition probabilities of links under a Markov law."""

import numpy as np

from des.base.checks import require_non_negative
from des.base.lazy import lazy_imports
from des.dynamics.markov import MarkovModulated

with lazy_imports(__name__):
    from scipy import linalg


def chances_after(law: MarkovModulated, time_s: float) -> np.ndarray:
    """Probability of each state of a link after a time, from row to column, (S, S).

    Parameters
    ----------
    time_s
        Time between the two moments. [s]

    Raises
    ------
    ValueError
        If the time is negative or not finite.

    Notes
    -----
    The exponential of the generator times ``time_s``: a state is left at the rate ``1 /
    mean_dwell_s``, for each successor with its probability.

    Examples
    --------
    >>> from des.dynamics.markov import LinkState, MarkovModulated
    >>> up = LinkState(name="up", bandwidth_factor=1.0, mean_dwell_s=1.0, followed_by=(("jam", 1),))
    >>> jam = LinkState(name="jam", bandwidth_factor=0, mean_dwell_s=1.0, followed_by=(("up", 1),))
    >>> chances_after(MarkovModulated(states=(up, jam)), 0.5).round(4).tolist()  # (1 + e^-1) / 2
    [[0.6839, 0.3161], [0.3161, 0.6839]]
    """
    require_non_negative("dynamics", "time_s", time_s)
    number = {state.name: index for index, state in enumerate(law.states)}
    rates_per_s = np.zeros((len(number), len(number)))
    for row, state in enumerate(law.states):
        for name, probability in state.followed_by:
            rates_per_s[row, number[name]] = probability / state.mean_dwell_s
    rates_per_s -= np.diag(rates_per_s.sum(axis=1))
    chances: np.ndarray = linalg.expm(rates_per_s * time_s)
    return chances
