"""Plans of Megatron-LM that are enumerated: settings of a pipeline, and orders of sites."""

from collections.abc import Iterator
from itertools import permutations

from agents.decision.training_job import TrainingJob
from agents.search.settings import (
    GROUP_FACTORS,
    INTERLEAVED,
    MOST_CHUNKS,
    MOST_TENSOR,
    BoundSetting,
    Degrees,
    num_stages_of,
)
from agents.trainers.trainer import Trainer
from des import Topology
from des.job.models import architecture_named

SIZES = (1, 2, 4, 8)
"""Sequences of a microbatch on a data rank."""

MOST_SITES = 3
"""Most sites of a world; the number of orders of sites grows with its factorial."""


def settings_in(topology: Topology, job: TrainingJob, trainer: Trainer) -> Iterator[BoundSetting]:
    """All settings that a site has room for: degrees, sizes, recomputation, schedules.

    Tensor degrees divide the heads, data degrees the sequences, expert degrees the copies and the
    experts. Where there are copies of a stage their optimiser is sharded.
    """
    for degrees in _degrees(topology, job):
        for size in SIZES:
            if job.num_sequences % (size * degrees.data):
                continue
            for recomputation in ("flash", "full"):
                for schedule, chunks, factor in _orders():
                    yield BoundSetting(
                        degrees=degrees,
                        microbatch_size=size,
                        recomputation=recomputation,
                        gradient_precision=trainer.gradient_precision,
                        schedule=schedule,
                        num_chunks=chunks,
                        group_factor=factor,
                        is_blocking=trainer.sends_under(schedule) == "blocking",
                        whole_groups=trainer.whole_groups,
                    )


def _degrees(topology: Topology, job: TrainingJob) -> Iterator[Degrees]:
    architecture = architecture_named(job.model)
    num_experts = 1 if architecture.experts is None else architecture.experts.num_experts
    for tensor in _divisors(architecture.num_heads):
        for data in _divisors(job.num_sequences):
            for expert in _divisors(data):
                degrees = Degrees(
                    tensor=tensor,
                    data=data,
                    expert=expert,
                    sharding="optimiser" if data > 1 else "none",
                )
                has_room = any(num_stages_of(domain, degrees) for domain in topology.domains)
                if tensor <= MOST_TENSOR and num_experts % expert == 0 and has_room:
                    yield degrees


def _divisors(total: int) -> list[int]:
    return [each for each in range(1, total + 1) if total % each == 0]


def _orders() -> Iterator[tuple[str, int, float]]:
    """Schedules with chunks of a device, and microbatches of a group over devices."""
    yield "1f1b", 1, 1.0
    for chunks in range(2, MOST_CHUNKS + 1):
        for factor in GROUP_FACTORS:
            yield INTERLEAVED, chunks, factor


def orders_of_sites(num_sites: int) -> list[tuple[int, ...]]:
    """Every order of every set of sites.

    Examples
    --------
    >>> orders_of_sites(2)
    [(0,), (1,), (0, 1), (1, 0)]
    """
    return [
        order
        for count in range(1, num_sites + 1)
        for order in permutations(range(num_sites), count)
    ]
