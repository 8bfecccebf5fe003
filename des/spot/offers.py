"""Offers: sets of sites that a training job may hold, with their times as tables.

Times come from bytes, storage and links; step times of each set are values from a
search of plans.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from des.base.checks import require_non_negative, require_positive
from des.dynamics.site_course import Flags
from des.plan.replacement import GPU_HOURS_PER_INTERRUPTION

Table = npt.NDArray[np.float64]

FAILURES_PER_GPU_S = 1.0 / (3600.0 * GPU_HOURS_PER_INTERRUPTION)
"""Failures of servers, as in the training of Llama 3 405B. [1/s]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class StateSizes:
    """Sizes and rates behind the times of moves.

    Attributes
    ----------
    state_bytes
        Weights and the optimiser's state. [bytes]
    storage_bytes_per_s
        Rate at which all servers of each site write and read checkpoints, (S,). [bytes/s]
    link_bytes_per_s
        From row to column, (S, S); the diagonal is not looked at. [bytes/s]
    restart_s
        Of the job, without reading. [s]
    """

    state_bytes: float
    storage_bytes_per_s: Table
    link_bytes_per_s: Table
    restart_s: float

    def __post_init__(self) -> None:
        require_positive("state sizes", "state_bytes", self.state_bytes)
        require_non_negative("state sizes", "restart_s", self.restart_s)
        shape = (len(self.storage_bytes_per_s),) * 2
        if self.link_bytes_per_s.shape != shape:
            raise ValueError(
                f"state sizes: link_bytes_per_s must be {shape}, got {self.link_bytes_per_s.shape}"
            )

    def checkpoint_s(self, shares: Table) -> Table:
        """Time to write the parts of the state, (C,), that sites compute with, (C, S). [s]"""
        time_s: Table = (shares * self.state_bytes / self.storage_bytes_per_s).max(axis=1)
        return time_s

    def move_s(self, held: Table, shares: Table) -> Table:
        """Time from what is held to each offer, (H, C). [s]

        Parameters
        ----------
        held
            Part of the state that the storage of each site has, (H, S).
        shares
            Part of the state that each site computes with, (C, S).

        Notes
        -----
        A restart, what each site reads from storage, and before that what it lacks over the
        quickest link from a site that holds any: the slowest site counts. What is held by no
        site that links join comes from outside at no more than reading.
        """
        lacks = np.maximum(shares[np.newaxis] - held[:, np.newaxis], 0.0) * self.state_bytes
        rates = np.where(held[:, :, np.newaxis] > 0, self.link_bytes_per_s, 0.0)
        rates[:, range(rates.shape[1]), range(rates.shape[1])] = 0.0
        best = np.broadcast_to(rates.max(axis=1)[:, np.newaxis, :], lacks.shape)
        is_sent = (lacks > 0) & (best > 0)
        links_s = np.divide(lacks, best, out=np.zeros_like(lacks), where=is_sent).max(axis=2)
        time_s: Table = self.restart_s + links_s + self.checkpoint_s(shares)
        return time_s


def checkpoint_period_s(checkpoint_s: float, failures_per_s: float) -> float:
    """Best time of work between two checkpoints by Young and Daly. [s]

    Notes
    -----
    ``sqrt(2 d M)`` [1]_ with the higher-order terms of [2]_, for a checkpoint of ``d`` and a mean
    time ``M`` between failures; ``M`` where ``d >= 2 M``.

    References
    ----------
    .. [1] J. W. Young, "A first order approximation to the optimum checkpoint interval", Commun.
       ACM 17(9), 1974.
    .. [2] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
       dumps", Future Generation Computer Systems 22(3), 2006.

    Examples
    --------
    >>> round(checkpoint_period_s(8.0, 1 / 3600.0), 1)
    234.7
    """
    require_positive("checkpoints", "checkpoint_s", checkpoint_s)
    require_positive("checkpoints", "failures_per_s", failures_per_s)
    mean_s = 1.0 / failures_per_s
    if checkpoint_s >= 2.0 * mean_s:
        return mean_s
    ratio = checkpoint_s / (2.0 * mean_s)
    first = math.sqrt(2.0 * checkpoint_s * mean_s)
    return first * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - checkpoint_s


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers:
    """Sets of sites to choose from, C of them, over S sites.

    Attributes
    ----------
    names
        Of the offers.
    needs
        Sites that must be up, (C, S).
    tokens_per_s
        While training, checkpoints not counted, (C,).
    move_s
        From the state of an offer (row; the last row: from outside) to an offer, (C + 1, C). The
        diagonal is a restart in place. [s]
    checkpoint_s, period_s
        Time of a checkpoint, and of work between two, (C,). [s]
    failures_per_s
        Of servers, (C,).
    usd_per_s
        Price while held, (C,).
    """

    names: tuple[str, ...]
    needs: Flags
    tokens_per_s: Table
    move_s: Table
    checkpoint_s: Table
    period_s: Table
    failures_per_s: Table
    usd_per_s: Table

    def __post_init__(self) -> None:
        count = len(self.names)
        if not count or len(self.needs) != count or not self.needs.any(axis=1).all():
            raise ValueError(
                f"offers: needs must name at least one site for each of {count} offers, got "
                f"{self.needs.tolist()}"
            )
        columns = ("tokens_per_s", "checkpoint_s", "period_s", "failures_per_s", "usd_per_s")
        shapes = dict.fromkeys(columns, (count,)) | {"move_s": (count + 1, count)}
        for name, shape in shapes.items():
            table = getattr(self, name)
            if table.shape != shape or not (np.isfinite(table) & (table >= 0)).all():
                raise ValueError(
                    f"offers: {name} must be {shape}, finite and not negative, got {table!r}"
                )
        for name in ("tokens_per_s", "period_s"):
            if not (getattr(self, name) > 0).all():
                raise ValueError(f"offers: {name} must be positive, got {getattr(self, name)!r}")

    @property
    def num_sites(self) -> int:
        """Sites, S."""
        return int(self.needs.shape[1])

    @property
    def kept_tokens_per_s(self) -> Table:
        """Tokens per second of training and checkpoints, (C,)."""
        kept: Table = self.tokens_per_s * self.period_s / (self.period_s + self.checkpoint_s)
        return kept

    @classmethod
    def of_sets(
        cls,
        names: Sequence[str],
        needs: Flags,
        tokens_per_s: Table,
        shares: Table,
        sizes: StateSizes,
        *,
        gpus: npt.NDArray[np.int64],
        usd_per_gpu_s: Table,
        copies: Flags | None = None,
        losses_per_s: Table | float = 0.0,
        failures_per_gpu_s: float = FAILURES_PER_GPU_S,
    ) -> "Offers":
        """Offers of sets of sites.

        Parameters
        ----------
        needs, tokens_per_s, shares
            As above; parts of the state that sites compute with, (C, S).
        gpus, usd_per_gpu_s
            GPUs of each site and their prices, (S,).
        copies
            Sites that keep a standby copy of the whole state, (C, S): moves there send nothing.
        losses_per_s
            Rate at which a held site goes away, for the period of checkpoints: of all, or the mean
            of each offer, (C,).
        """
        kept = shares if copies is None else np.maximum(shares, copies)
        held = np.vstack([kept, np.zeros((1, kept.shape[1]))])
        checkpoint_s = sizes.checkpoint_s(shares)
        failures: Table = np.float64(failures_per_gpu_s) * (needs @ gpus)
        lost = failures + needs.sum(axis=1) * losses_per_s
        pairs = zip(checkpoint_s.tolist(), lost.tolist(), strict=True)
        return cls(
            names=tuple(names),
            needs=needs,
            tokens_per_s=tokens_per_s,
            move_s=sizes.move_s(held, shares),
            checkpoint_s=checkpoint_s,
            period_s=np.array([checkpoint_period_s(*pair) for pair in pairs]),
            failures_per_s=failures,
            usd_per_s=needs @ (gpus * usd_per_gpu_s),
        )
