"""Whether a change of plan pays: its cost against the epoch time that it saves over a horizon."""

import numpy as np

from des.compiled.many.layout import Real


def over_horizon_s(
    change_s: float | Real, epoch_s: float | Real, horizon_epochs: float | Real
) -> Real:
    """Time until a horizon ends under a plan: change first, then epochs as long as the present one.

    Parameters
    ----------
    change_s
        To change to the plan; 0 for the plan in force. [s]
    epoch_s
        Time of an epoch's work under the plan on the network as it is. [s]
    horizon_epochs
        Epochs for which the network is thought to stay as it is. Endless ones let no change cost
        count: the result is then the epoch time alone.

    Notes
    -----
    ``change_s + horizon_epochs * epoch_s``; arguments are scalars, or arrays that broadcast.

    Examples
    --------
    >>> float(over_horizon_s(30.0, 100.0, 4.0))
    430.0
    >>> float(over_horizon_s(30.0, 100.0, float("inf")))
    100.0
    """
    is_endless = np.isinf(horizon_epochs)
    weight = np.where(is_endless, 1.0, horizon_epochs)
    total_s: Real = np.where(is_endless, 0.0, change_s) + weight * epoch_s
    return total_s


def pays(change_s: float, epoch_s: float, present_epoch_s: float, horizon_epochs: float) -> bool:
    """Whether a change of plan takes less time than it saves within a horizon.

    Parameters
    ----------
    change_s
        Time of the change; ``inf`` where it is impossible. [s]
    epoch_s, present_epoch_s
        Time of an epoch's work under the new plan and under the one in force; ``inf`` where the
        plan does not work. [s]
    horizon_epochs
        As for `over_horizon_s`; 0 holds on to the plan in force.

    Notes
    -----
    ``change_s + horizon_epochs * epoch_s < horizon_epochs * present_epoch_s``: of equals the plan
    in force stays. A plan in force that does not work is left wherever another can be reached.

    Examples
    --------
    A change of 30 s that saves 10 s an epoch pays within four epochs, not within three:

    >>> pays(30.0, 90.0, 100.0, 4.0), pays(30.0, 90.0, 100.0, 3.0)
    (True, False)
    """
    if not (np.isfinite(change_s) and np.isfinite(epoch_s)):
        return False
    if not np.isfinite(present_epoch_s):
        return True
    changed_s = over_horizon_s(change_s, epoch_s, horizon_epochs)
    return bool(changed_s < over_horizon_s(0.0, present_epoch_s, horizon_epochs))
