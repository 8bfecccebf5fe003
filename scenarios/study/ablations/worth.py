"""Worth of learned placements: gaps of what has learnt nothing less those of trained policies."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agents.hi_ppo.controls import CONTROLS
from scenarios.frame.statistics import MeanInterval
from scenarios.study.ablations.intervals import over_seeds_and_networks
from scenarios.study.ablations.variants import HI_PPO


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Difference of the gaps of a control and of the trained policies, in points, paired.

    Attributes
    ----------
    control
        What has learnt nothing, see `agents.hi_ppo.controls.CONTROLS`; the look-ahead is the same.
    num_domains
        Of the networks; None: of all sizes together.
    points
        Mean over seeds and networks; positive where the trained policies are nearer to the best
        plan.
    """

    control: str
    num_domains: int | None
    points: MeanInterval

    @property
    def is_shown(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.points.mean - self.points.half_width > 0.0

    def __str__(self) -> str:
        size = "all sizes" if self.num_domains is None else f"K = {self.num_domains}"
        told = "" if self.is_shown else ": no gain is shown"
        return (
            f"{size}, learned placements against {self.control}: "
            f"{self.points.mean:.2f} ± {self.points.half_width:.2f} points nearer to the best plan"
            f"{told}"
        )


def worth_of(frame: pd.DataFrame) -> list[Worth]:
    """Return what learning is worth with the look-ahead, for each size and for all together.

    Parameters
    ----------
    frame
        Rows of `scenarios.study.ablations.command.compared_variants`. Networks on which a plan
        does not fit are left out.
    """
    sizes = sorted(frame["num_domains"].unique())
    every = [(int(size), frame[frame["num_domains"] == size]) for size in sizes]
    parts = [*every, *([(None, frame)] if len(sizes) > 1 else [])]
    return [one for size, part in parts for one in _of_size(size, part)]


def _of_size(size: int | None, part: pd.DataFrame) -> Iterator[Worth]:
    part = part[part["variant"].isin((HI_PPO, *CONTROLS))]
    gaps = 100.0 * part.pivot(index="seed", columns=["variant", "network"], values="gap")
    for control in CONTROLS:
        points = gaps[control].to_numpy() - gaps[HI_PPO].to_numpy()
        points = points[:, np.isfinite(points).all(axis=0)]
        if points.size:
            yield Worth(control=control, num_domains=size, points=over_seeds_and_networks(points))
