"""Schedules that a search of bound plans chooses from."""

from collections.abc import Iterator

from agents.trainers.trainer import Trainer
from des.schedules.registry import has_pace

MOST_CHUNKS = 4
"""Most stages of a GPU under an interleaved schedule that the search tries."""

GROUP_FACTORS = (1.0, 1.5, 2.0, 3.0)
"""Microbatches of a group of the interleaved schedule, over the stages of the pipeline."""

INTERLEAVED = "interleaved_1f1b"
"""Schedule of several chunks a device."""

_PERFECT = "1f1b_8x", "zb_h1_8x", "zb_h1_32x"
"""Further schedules of perfect devices, whose memory holds many more microbatches."""

_PACED = "1f1b", "1f1b_2x", "1f1b_4x", "zb_h1", "zb_h1_2x", "zb_h1_4x"
"""Schedules of one chunk a device of a trainer that runs any."""

_UNPACED = "deep_1f1b", "greedy", "zb_auto"
"""Schedules of such a trainer that look at the times of a plan, the quick ones."""


def schedules_of(
    trainer: Trainer, asked: tuple[str, ...]
) -> Iterator[tuple[str, int, float, bool]]:
    """Schedules to choose from: chunks of a device, size of groups, and whether sends block."""
    for name in survey_schedules(trainer, asked):
        is_blocking = trainer.sends_under(name) == "blocking"
        if name == INTERLEAVED:
            for chunks in range(2, MOST_CHUNKS + 1):
                yield from ((name, chunks, factor, is_blocking) for factor in GROUP_FACTORS)
        else:
            yield name, 1, 1.0, is_blocking


def unpaced_schedules(trainer: Trainer, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Schedules that are made for one plan each, for the last few plans of a search.

    Parameters
    ----------
    asked
        Those to choose from; empty: all of the trainer.
    """
    names = asked or (() if trainer.schedules else _UNPACED)
    return tuple(one for one in names if one != INTERLEAVED and not has_pace(one))


def survey_schedules(trainer: Trainer, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Schedules that pipelines are searched with; paced ones stand in for those without a pace."""
    every = (*_PACED, *_PERFECT) if trainer.is_ideal else (*_PACED, INTERLEAVED)
    names = asked or trainer.schedules or every
    unpaced = unpaced_schedules(trainer, asked)
    return tuple(one for one in names if one not in unpaced) or _PACED
