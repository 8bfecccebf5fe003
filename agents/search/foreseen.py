"""Families of settings with times of iterations without any wait, by which a search orders them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.chains import Chain
from agents.search.kernels.levels import write_foreseen_s
from agents.search.kernels.records import SiteFigures, SiteLevels, SiteMemory
from agents.search.settings import BoundSetting, differences, together_of

FORESEEN = 48
"""Microbatches from which the time of all of an iteration is carried on, at least."""

Sizes = int | float | np.ndarray
"""Figure of a setting, or of each of several."""

_ROUNDING = 1.0 - 1e-9
"""Part of a bound that is left for sums in another order."""


Families = Sequence[Sequence[BoundSetting]]
"""Settings that differ by the size of groups of microbatches alone, small ones first."""


@dataclass(frozen=True, kw_only=True)
class Schedules:
    """Schedules of families of settings.

    Attributes
    ----------
    orders, paces
        Of each family, see `levels.write_foreseen_s`.
    factors, num_sizes
        Microbatches of groups over the stages of the pipeline, (families, sizes), and how many
        sizes each family has.
    together
        Sequences of a microbatch of each.
    first, figures_at
        One family each of those with equal figures, and for every family which of these.
    message_bytes, outer_at
        Sizes of messages, and for every family which of these.
    """

    families: Families
    orders: np.ndarray
    paces: np.ndarray
    factors: np.ndarray
    num_sizes: np.ndarray
    together: np.ndarray
    first: list[int]
    figures_at: np.ndarray
    message_bytes: list[float]
    outer_at: np.ndarray

    @classmethod
    def of(cls, families: Families, job: TrainingJob, num_microbatches: Sequence[int]) -> Self:
        """Take them from the settings."""
        settings = [own[0] for own in families]
        orders, paces = [], []
        for one, count in zip(settings, num_microbatches, strict=True):
            depth, behind, ahead = one.pace
            orders.append((count, one.num_chunks, ahead, one.is_blocking))
            paces.append((depth, -1.0 if behind is None else behind, one.group_factor))
        factors = np.ones((len(families), max(map(len, families))))
        for row, own in zip(factors, families, strict=True):
            row[: len(own)] = [one.group_factor for one in own]
        keys = list(map(differences, settings))
        first = {key: at for at, key in reversed(list(enumerate(keys)))}
        number = {key: at for at, key in enumerate(first)}
        figures_at = np.array([number[key] for key in keys], np.int64)
        sizes = [settings[at].workload(job).message_bytes for at in first.values()]
        kinds = list(dict.fromkeys(sizes))
        return cls(
            families=families,
            orders=np.array(orders, np.int64),
            paces=np.array(paces),
            factors=factors,
            num_sizes=np.array(list(map(len, families)), np.int64),
            together=np.array(list(map(together_of, settings)), np.int64),
            first=list(first.values()),
            figures_at=figures_at,
            message_bytes=kinds,
            outer_at=np.array([kinds.index(size) for size in sizes], np.int64)[figures_at],
        )


@dataclass(frozen=True, kw_only=True)
class ForeseenTimes:
    """Times of iterations without any wait under each family of settings.

    Attributes
    ----------
    levels, memory
        Of all sites under each family, (families, sites).
    is_there
        Whose figures are in `stack`, see `Schedules.first`.
    """

    num_layers: int
    levels: SiteLevels
    memory: SiteMemory
    schedules: Schedules
    is_there: np.ndarray
    _stacks: list[SiteFigures] = field(default_factory=list)

    @property
    def stack(self) -> SiteFigures:
        """Figures of families, ways between sites apart, with one more axis in front."""
        return self._stacks[0]

    def put(self, at: int, figures: SiteFigures) -> None:
        """Put figures of all sites into the stack; devices that a site lacks have any."""
        if not self._stacks:
            most, wide = int(self.levels.num_devices.max()), ("sums_s", "inner_s", "back_s")
            shapes = {name: one.shape for name, one in figures._asdict().items()}
            shapes |= {name: (shapes[name][0], most, *shapes[name][2:]) for name in wide}
            made = {
                name: np.zeros((len(self.is_there), *shape), getattr(figures, name).dtype)
                for name, shape in shapes.items()
            }
            self._stacks.append(SiteFigures(**made))
        for stack, one in zip(self.stack, figures, strict=True):
            own = stack[at]
            if own.ndim > 2 and 1 < one.shape[1] < own.shape[1]:
                own = own[:, : one.shape[1]]
            own[...] = one
        self.is_there[at] = True

    @property
    def alone_s(self) -> float:
        """Time below which no pipeline of one site is, if its devices were always busy. [s]

        A whole backward pass takes no longer than its two halves.
        """
        whole_s = self.schedules.orders[:, :1] * self.num_layers * self.levels.layer_s
        return float((whole_s / np.maximum(self.levels.num_devices, 1)).min()) * _ROUNDING

    def at_s(self, chain: Chain, num_microbatches: np.ndarray | None = None) -> np.ndarray:
        """Times of some sites under each family, see `levels.foreseen_s`, (families,). [s]

        ``num_microbatches`` are those of a pipeline; None: of each replica of the setting.
        """
        orders = self.schedules.orders
        times_s = np.zeros(len(orders))
        if num_microbatches is not None:
            orders = np.column_stack([num_microbatches, orders[:, 1:]])
        write_foreseen_s(
            *(self.levels, self.memory, self.num_layers, orders, self.schedules.paces),
            *(np.array(chain), times_s),
        )
        return times_s


def room_sizes(
    num_devices: Sizes,
    num_layers: int,
    orders: tuple[Sizes, Sizes, Sizes],
    paces: tuple[Sizes, Sizes],
    *,
    is_whole: bool,
) -> tuple[int, int, int, int]:
    """Sizes of room for the longest pipelines that there can be, see `records.new_room`.

    ``orders`` are microbatches, chunks and forwards ahead of settings, ``paces`` depth and size of
    groups; ``is_whole``: all microbatches are simulated.
    """
    (count, chunks, ahead), (depth, factor) = orders, paces
    most = np.minimum(num_devices, num_layers // chunks)
    step = np.maximum(1, np.rint(most * factor)).astype(np.int64)
    short = count + step + 1
    if not is_whole:
        held = (2 * np.minimum(ahead + depth * most + 1, count)).astype(np.int64) + step
        short = np.minimum(short, np.maximum(np.maximum(FORESEEN, 3 * step), held) + step)
    sizes = np.maximum(most, 1), chunks, 3 * chunks * short, short
    workers, chunks, rows, microbatches = (int(np.max(one)) for one in sizes)
    return workers, chunks, rows, microbatches
