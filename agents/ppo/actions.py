"""Action encodings: how integers chosen by a policy become a placement of layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol, get_args

from des import Placement

ActionEncoding = Literal["per_layer", "order_split"]
"""Names of the encodings, as users write them."""


class ActionCodec(Protocol):
    """Turns an action, one integer a component, into a placement.

    ``sizes`` holds the number of choices of each component. ``ordinal_starts`` holds, for a
    component whose choices are ordered quantities, the share of its range where a policy best
    starts looking; None for a plain category.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of choices of each component."""

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Start of each ordered component; None for a category."""

    def decode(self, action: Sequence[int]) -> Placement:
        """Turn an action into a placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayerCodec:
    """One component a layer: the domain it runs in. Any pattern can be said."""

    num_domains: int
    num_layers: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """``num_layers`` components of ``num_domains`` choices."""
        return (self.num_domains,) * self.num_layers

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Domains are categories, not quantities."""
        return (None,) * self.num_layers

    def decode(self, action: Sequence[int]) -> Placement:
        """Read the domains off the action."""
        return Placement(domain_of_layer=tuple(int(domain) for domain in action))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSplitCodec:
    """Order of the domains and the layers where the next domain begins.

    The first ``K - 1`` components pick the next domain among those left, with ``K, K - 1, ..., 2``
    choices. The other ``K - 1`` are split points in ``0..num_layers``, in any order; between equal
    ones a domain gets no layers, so every contiguous placement can be said.

    Examples
    --------
    >>> codec = OrderSplitCodec(num_domains=3, num_layers=6)
    >>> codec.decode([2, 0, 4, 1]).domain_of_layer
    (2, 0, 0, 0, 1, 1)
    """

    num_domains: int
    num_layers: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Choices of the order, then of the split points."""
        splits = (self.num_layers + 1,) * (self.num_domains - 1)
        return (*range(self.num_domains, 1, -1), *splits)

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Split points start at an even split."""
        even = (index / self.num_domains for index in range(1, self.num_domains))
        return (*(None for _ in range(self.num_domains - 1)), *even)

    def decode(self, action: Sequence[int]) -> Placement:
        """Put the domains in order and cut the layers at the sorted split points."""
        num_picks = self.num_domains - 1
        left = list(range(self.num_domains))
        order = [left.pop(pick) for pick in action[:num_picks]] + left
        cuts = [0, *sorted(int(cut) for cut in action[num_picks:]), self.num_layers]
        return Placement.contiguous(order, [end - start for start, end in pairwise(cuts)])


def action_codec(encoding: str, num_domains: int, num_layers: int) -> ActionCodec:
    """Make the codec of that name.

    Raises
    ------
    ValueError
        If there is no such encoding; the message lists those there are.
    """
    if encoding == "per_layer":
        return PerLayerCodec(num_domains=num_domains, num_layers=num_layers)
    if encoding == "order_split":
        if num_domains == 1:
            raise ValueError(
                "actions: order_split needs at least 2 domains to order, got 1; per_layer does not"
            )
        return OrderSplitCodec(num_domains=num_domains, num_layers=num_layers)
    known = ", ".join(get_args(ActionEncoding))
    raise ValueError(f"actions: must be one of {known}; got {encoding!r}")
