"""Prices of families that change the training: tokens that reach the same loss."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agents.decision.families import SYNCHRONOUS, family_of
from des import DecoupledDiLoCo, Plan, Workload
from des.plan.synchronisation import Synchronisation

_EXCESS_LOSS: Mapping[int, Mapping[float, tuple[float, float]]] = {
    2: {
        35e6: (3.485, 3.508), 90e6: (3.167, 3.182), 180e6: (2.950, 2.957), 335e6: (2.784, 2.788),
        550e6: (2.653, 2.657), 1.3e9: (2.460, 2.464), 2.4e9: (2.326, 2.323), 4e9: (2.224, 2.220),
        10e9: (2.090, 2.086),
    },
    4: {
        35e6: (3.485, 3.554), 90e6: (3.167, 3.213), 180e6: (2.950, 2.981), 335e6: (2.784, 2.808),
        550e6: (2.653, 2.673), 1.3e9: (2.460, 2.472), 2.4e9: (2.326, 2.332), 4e9: (2.224, 2.230),
        10e9: (2.090, 2.096),
    },
    8: {
        35e6: (3.485, 3.621), 90e6: (3.167, 3.265), 180e6: (2.950, 3.019), 335e6: (2.784, 2.841),
        550e6: (2.653, 2.698), 1.3e9: (2.460, 2.493), 2.4e9: (2.326, 2.351),
    },
}  # fmt: skip
"""Evaluation losses of data parallelism and of DiLoCo, by replicas and parameters of the model."""

SOURCE_OF_PRICES = (
    "losses of DiLoCo: Z. Charles et al., arXiv 2503.09799, tables 4 and 5; "
    "tokens from losses: J. Hoffmann et al., arXiv 2203.15556, appendix D.3"
)
"""Publications that default prices are reckoned from."""

PUBLISHED_STEPS = 30
"""Steps between the exchanges of the tables."""

NOT_WAITED_FOR = "no published loss of learners that do not wait for all others"
"""Note on each price of Decoupled DiLoCo."""

_WHOLE_BITS = 16.0
"""Bits of a value from which on an exchange counts as one of whole values, as in the tables."""

DATA_SCALE, DATA_EXPONENT = 410.7, 0.28
_TOKENS_PER_PARAMETER = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Tokens that a plan needs over those of data parallelism, to reach the same loss.

    Attributes
    ----------
    factor
        At least 1; None where nothing published tells it.
    note
        Limits of the figure, or the reason why there is none; empty where there is nothing to say.
    """

    factor: float | None
    note: str = ""


UNCHANGED = TokenPrice(factor=1.0)
"""Price of a plan that leaves the arithmetic of training as it is."""


def require_token_factor(owner: str, factor: float | None) -> None:
    """Refuse a price of changed training, in tokens of unchanged one, below 1."""
    if factor is not None and not 1.0 <= factor < math.inf:
        raise ValueError(f"{owner}: token_factor must be at least 1 and finite, got {factor!r}")


def changes_training(plan: Plan) -> bool:
    """Whether a plan trains by another arithmetic than data parallelism does."""
    return family_of(plan) not in SYNCHRONOUS or plan.activation_compression > 1.0


def price_of(plan: Plan, workload: Workload) -> TokenPrice:
    r"""Reckon the tokens that a plan needs over those of data parallelism, to the same loss.

    Parameters
    ----------
    workload
        Its model, whose parameters count.

    Notes
    -----
    At ``N`` parameters and the ``D = 20 N`` tokens of the tables [1]_, DiLoCo with ``M`` replicas
    has a loss that is higher by ``x``. By the fitted law [2]_
    ``L(N, D) = E + A / N^{0.34} + B / D^{0.28}``, ``B = 410.7``, it makes up for that with

    .. math:: D' / D = (1 - x D^{0.28} / B)^{-1 / 0.28}.

    ``x`` is interpolated in ``log N`` and in ``log M``. Fewer tokens than data parallelism needs
    are never credited: two replicas have the lower loss from 2.4 billion parameters on and cost 1.
    Outside the models of a table the price stays at its nearest one's, and ``note`` says so; above
    8 replicas there is none. The tables exchange every 30 steps in full precision; longer
    periods lose more, the less so the larger the model (figure 9 of [1]_, without numbers).
    Streaming DiLoCo has DiLoCo's price: its authors measure no loss on 1 billion parameters, with
    4 bits, 100 steps and one step of overlap (table 1 of [3]_). Decoupled DiLoCo [4]_ has it as
    the least that it may cost, always with a note: its report gives accuracies of one model (64.1
    against 64.4 %), no losses by learners and parameters. No table of losses in pre-training
    was found for activations that are compressed between stages, so they have no price.

    References
    ----------
    .. [1] Z. Charles et al., "Communication-efficient language model training scales reliably and
       robustly: scaling laws for DiLoCo", arXiv:2503.09799, tables 4 and 5.
    .. [2] J. Hoffmann et al., "Training compute-optimal large language models", NeurIPS'22
       (arXiv:2203.15556), appendix D.3.
    .. [3] A. Douillard et al., "Streaming DiLoCo with overlapping communication",
       arXiv:2501.18512.
    .. [4] A. Douillard et al., "Decoupled DiLoCo for resilient distributed pre-training",
       arXiv:2604.21428.
    """
    if plan.activation_compression > 1.0:
        return TokenPrice(
            factor=None, note="no published loss in pre-training with compressed activations"
        )
    if family_of(plan) in SYNCHRONOUS:
        return UNCHANGED
    num_replicas, most = len(plan.placements), max(_EXCESS_LOSS)
    if num_replicas > most:
        return TokenPrice(
            factor=None, note=f"no published loss with more than {most} replicas: {num_replicas}"
        )
    price = _diloco_price(num_replicas, math.fsum(workload.num_parameters))
    if isinstance(plan.synchronisation, DecoupledDiLoCo):
        return replace(price, note="; ".join(filter(None, (price.note, NOT_WAITED_FOR))))
    return price


def beyond_published(plan: Plan, workload: Workload) -> str:
    """Say where a plan is beyond the losses that its price is reckoned from; empty: nowhere."""
    if not changes_training(plan):
        return ""
    mode, found = plan.synchronisation, [price_of(plan, workload).note]
    if mode.steps_between > PUBLISHED_STEPS:
        found.append(f"exchanges every {mode.steps_between} steps, published every 30")
    if plan.replicas and mode.bits_per_value < _WHOLE_BITS:
        found.append(f"{mode.bits_per_value:g} bits of a value, published in whole values")
    return "; ".join(one for one in found if one)


def is_never_published(mode: Synchronisation, workload: Workload) -> bool:
    """Whether each plan of copies that seldom exchange in this way is `beyond_published`."""
    num_parameters = math.fsum(workload.num_parameters)
    sizes = [size for losses in _EXCESS_LOSS.values() for size in losses]
    return (
        isinstance(mode, DecoupledDiLoCo)
        or mode.steps_between > PUBLISHED_STEPS
        or mode.bits_per_value < _WHOLE_BITS
        or not min(sizes) <= num_parameters <= max(sizes)
    )


def _diloco_price(num_replicas: int, num_parameters: float) -> TokenPrice:
    factors = {count: _factor(_EXCESS_LOSS[count], num_parameters) for count in _EXCESS_LOSS}
    factor = _between(list(factors), list(factors.values()), num_replicas)
    above = min(count for count in factors if count >= num_replicas)
    least, most = min(_EXCESS_LOSS[above]), max(_EXCESS_LOSS[above])
    note = ""
    if num_parameters > most:
        note = f"as at {most / 1e9:g} billion parameters, the most published"
    elif num_parameters < least:
        note = f"as at {least / 1e6:g} million parameters, the fewest published"
    return TokenPrice(factor=factor, note=note)


def _factor(losses: Mapping[float, tuple[float, float]], num_parameters: float) -> float:
    """Tokens of DiLoCo over those of data parallelism for a model, at least 1."""
    sizes = list(losses)
    held = min(max(num_parameters, sizes[0]), sizes[-1])
    excess = _between(sizes, [found - plain for plain, found in losses.values()], held)
    tokens = _TOKENS_PER_PARAMETER * held
    share = excess * tokens**DATA_EXPONENT / DATA_SCALE
    return max(1.0, math.pow(1.0 - share, -1.0 / DATA_EXPONENT))


def _between(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """Interpolate in the logarithm of the place, which lies within the places."""
    index = min(max(bisect_right(places, place) - 1, 0), len(places) - 2)
    (low, high), (below, above) = (
        list(pairwise(places))[index],
        list(pairwise(values))[index],
    )
    share = math.log(place / low) / math.log(high / low)
    return below + share * (above - below)
