"""Plans in words: placements by the names of domains, a bar between replicas, and their tree."""

import re
import reprlib
from collections.abc import Sequence
from typing import NamedTuple

from des.plan.placement import Placement
from des.plan.plan import Plan
from des.plan.shares import parse_counts

PERFECT_DEVICES = "each domain counts as one perfect device, which no trainer has"
"""Sentence below times of plans that say nothing about the GPUs inside domains."""


class Pipelines(NamedTuple):
    """Pipelines as written: placements, and microbatches and tree of the replicas where given."""

    placements: tuple[Placement, ...]
    shares: tuple[int, ...]
    tree: tuple[int, ...]


def placement_text(placement: Placement, domain_names: Sequence[str]) -> str:
    """Write a placement with names of domains, as `Placement.parse` reads it.

    Examples
    --------
    >>> placement_text(Placement.parse("1*28,0*52"), ["East", "West"])
    'West*28,East*52'
    """
    runs = zip(placement.stages, placement.run_texts, strict=True)
    return ",".join(f"{domain_names[run.domain]}*{text}" for run, text in runs)


def pipelines_text(plan: Plan, domain_names: Sequence[str]) -> str:
    """Write the pipelines of a plan as `parse_pipelines` reads them.

    Examples
    --------
    >>> here, there = Placement.parse("0*28,1*52"), Placement.parse("2*80")
    >>> plan = Plan(placement=here, replicas=(there,), shares=(20, 12))
    >>> pipelines_text(plan, ["East", "Central", "West"])
    'East*28,Central*52 x20 | West*80 x12'
    """
    texts = [placement_text(one, domain_names) for one in plan.placements]
    shares = [f" x{share}" for share in plan.shares] or [""] * len(texts)
    above = ["", *(f" ^{one}" for one in plan.exchange.tree)]
    if len(above) < len(texts):
        above = [""] * len(texts)
    return " | ".join(map("".join, zip(texts, shares, above, strict=True)))


def parse_pipelines(text: str, domain_names: Sequence[str] = ()) -> Pipelines:
    """Read placements of replicas, a bar between two, the microbatches of each, and their tree.

    Microbatches are written ``x20`` behind a placement, of all replicas or of none; without them
    the replicas share a step evenly. ``^0`` behind all but the first is the replica, from 0, to
    which each sends its sums of gradients in a tree.

    Raises
    ------
    ValueError
        If an item is not a domain or a count, or only some of the replicas have microbatches or
        one above them.

    Examples
    --------
    >>> names = ["East", "West", "North"]
    >>> found = parse_pipelines("East*1,West*2 x3 | North*3 x5 ^0", names)
    >>> [str(one) for one in found.placements], found.shares, found.tree
    (['0*1,1*2', '2*3'], (3, 5), (0,))
    """
    placements: list[Placement] = []
    shares: list[int] = []
    tree: list[int] = []
    for part in text.split("|"):
        match = re.fullmatch(r"(.*?)(?:\s+x\s*([0-9]+))?(?:\s+\^\s*([0-9]+))?\s*", part, re.DOTALL)
        placement, share, above = match.groups() if match else (part, None, None)
        if above and not placements:
            raise ValueError(f"plan: the first replica must have none above it, got ^{above}")
        placements.append(Placement.parse(placement, domain_names))
        shares += parse_counts(share, "shares") if share else ()
        tree += parse_counts(above, "tree") if above else ()
    if shares and len(shares) != len(placements):
        raise ValueError(
            f"plan: microbatches such as x20 must stand behind each of the {len(placements)} "
            f"replicas or behind none, got {len(shares)} in {reprlib.repr(text)}"
        )
    if tree and len(tree) != len(placements) - 1:
        raise ValueError(
            f"plan: the replica above, such as ^0, must stand behind each but the first of the "
            f"{len(placements)} replicas or behind none, got {len(tree)} in {reprlib.repr(text)}"
        )
    return Pipelines(tuple(placements), tuple(shares), tuple(tree))
