"""Local plans of some GPUs as arrays, one row each: all of them, and those that fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, product
from typing import Final, NamedTuple

import numpy as np

from agents.decision.training_job import MICROBATCH_SIZES, TrainingJob
from agents.hi_ppo.local.case import RECOMPUTATIONS, DomainCase, LocalCase, sums_of
from des import InfeasiblePlacementError, Nodes, Parallelism
from des.costs.memory import bytes_per_parameter
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS, compute_rate_flops_per_s
from des.devices.gpus import GROUP_SIZES
from des.job.transformer import GRADIENT_BYTES
from des.plan.parallelism import Sharding
from des.plan.plan import split_evenly

_SHARDED: Final[tuple[Sharding, ...]] = ("none", "optimiser")
"""Levels of sharding to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOption:
    """A local plan without the binding."""

    parallelism: Parallelism
    microbatch_size: int
    recomputation: str

    def __str__(self) -> str:
        return (
            f"{self.parallelism}, {self.microbatch_size} sequences a microbatch, "
            f"{self.recomputation} recomputation"
        )


class Rows(NamedTuple):
    """All N options of some GPUs; arrays (N,), flags as 0 and 1.

    ``per_parameter_bytes`` is the model state of a parameter, all GPUs of a device together.
    """

    options: tuple[LocalOption, ...]
    tensor: np.ndarray
    data: np.ndarray
    pipeline: np.ndarray
    microbatch_size: np.ndarray
    is_full: np.ndarray
    is_sharded: np.ndarray
    per_parameter_bytes: np.ndarray

    def taken(self, chosen: np.ndarray) -> "Rows":
        """Return some of the rows, by a flag each."""
        options = tuple(compress(self.options, chosen.tolist()))
        return Rows(options, *(each[chosen] for each in self[1:]))


@lru_cache(maxsize=256)
def rows_of(num_gpus: int, nodes: Nodes | None = None, *, most_devices: int | None = None) -> Rows:
    """All options of a number of free GPUs, also those that exceed the memory.

    A replica works on whole sequences, so ``data`` divides the microbatch. ``tensor`` is a power of
    two, which divides the heads of all presets. One optimiser for several replicas is an option
    where there are several. Of one server the smallest tensor groups come first. Of GPUs on
    several, or of more than a server that is known has, the largest do: pipelines have at most some
    devices, and those of which `is_worth_while` is false have the time of others.
    """
    options = []
    for size, name in product(MICROBATCH_SIZES, RECOMPUTATIONS):
        shapes = shapes_over(num_gpus, size, nodes, most_devices or num_gpus)
        if most_devices is None:
            shapes = tuple(sorted(shapes, key=lambda shape: shape.tensor))
        options += [
            LocalOption(parallelism=shape, microbatch_size=size, recomputation=name)
            for shape in shapes
        ]
    return _rows(options)


def is_worth_while(num_devices: np.ndarray, num_layers: int) -> np.ndarray:
    """Whether fewer devices would have more layers on the fullest one; of no more than layers (N,).

    Examples
    --------
    >>> is_worth_while(np.arange(1, 9), 7)
    array([ True,  True,  True,  True, False, False,  True, False])
    """
    fullest = -(-num_layers // num_devices)
    of_fewer = -(-num_layers // np.maximum(1, num_devices - 1))
    is_first = num_devices == 1
    return np.asarray((num_devices <= num_layers) & (is_first | (fullest < of_fewer)))


@lru_cache(maxsize=256)
def shapes_over(
    num_gpus: int, microbatch_size: int, nodes: Nodes | None, most_devices: int
) -> tuple[Parallelism, ...]:
    """Ways to share layers over GPUs, the largest tensor groups and fewest devices first."""
    found = list[Parallelism]()
    for tensor, data in product(sorted(GROUP_SIZES, reverse=True), GROUP_SIZES):
        if microbatch_size % data:
            continue
        for pipeline in range(1, min(most_devices, num_gpus // (tensor * data)) + 1):
            for sharding in _SHARDED if data > 1 else _SHARDED[:1]:
                shape = Parallelism(tensor=tensor, data=data, pipeline=pipeline, sharding=sharding)
                if nodes is None or nodes.allows_tensor(tensor, shape.num_gpus):
                    found.append(shape)
    return tuple(found)


def _rows(options: Sequence[LocalOption]) -> Rows:
    shapes = [option.parallelism for option in options]
    return Rows(
        options=tuple(options),
        tensor=np.array([each.tensor for each in shapes]),
        data=np.array([each.data for each in shapes]),
        pipeline=np.array([each.pipeline for each in shapes]),
        microbatch_size=np.array([option.microbatch_size for option in options]),
        is_full=np.array([int(option.recomputation == "full") for option in options]),
        is_sharded=np.array([int(each.shards("optimiser")) for each in shapes]),
        per_parameter_bytes=np.array([float(sum(bytes_per_parameter(each))) for each in shapes]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The N options of a case that fit, and the work of up to D devices each.

    D are the devices of the longest pipeline.

    Attributes
    ----------
    rows
        Their parallelism and so on.
    num_layers, compute_s, gradient_bytes
        Layers (N, D) of the devices in a row, time of a microbatch's passes without exchanges [s],
        and gradients that one GPU holds [bytes]. 0 after the last device.
    message_bytes
        Activation that one replica sends on (N,).
    num_microbatches
        Of an iteration (N,).
    memory_fraction
        Of the fullest GPU's room (N,).
    """

    rows: Rows
    num_layers: np.ndarray
    compute_s: np.ndarray
    gradient_bytes: np.ndarray
    message_bytes: np.ndarray
    num_microbatches: np.ndarray
    memory_fraction: np.ndarray

    def __len__(self) -> int:
        return len(self.rows.options)


def _all_rows(case: DomainCase) -> Rows:
    """All options that are worth while, also those that exceed the memory."""
    nodes = case.domain.nodes
    if isinstance(case, LocalCase) and case.num_servers == 1:
        rows = rows_of(len(case.gpus.free))
        can_be = rows.pipeline <= case.num_layers
    else:
        if nodes is not None:
            nodes = _shape_of(nodes.gpus_per_node, nodes.tensor_across_nodes)
        rows = rows_of(case.domain.num_gpus, nodes, most_devices=case.job.layer_count)
        can_be = is_worth_while(rows.pipeline, case.num_layers)
    return rows.taken(can_be & np.isin(rows.microbatch_size, case.job.microbatch_sizes))


@lru_cache(maxsize=16)
def _shape_of(gpus_per_node: int, tensor_across_nodes: bool) -> Nodes:
    """Nodes of which nothing but what options depend on is known."""
    return Nodes(
        gpus_per_node=gpus_per_node,
        nics_per_node=1,
        nic_bandwidth_bytes_per_s=1.0,
        nic_latency_s=0.0,
        tensor_across_nodes=tensor_across_nodes,
    )


def options_of(case: DomainCase) -> Options:
    """Return all options of a case that fit into memory, by the formulas of `des.costs.memory`.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, naming what the one lacks that lacks least.
    """
    rows = _all_rows(case)
    num_layers, figures = _device_figures(case, rows)
    gpus_per_device = rows.tensor * rows.data
    room = case.room_bytes * gpus_per_device[:, None]
    num_microbatches = case.job.num_sequences // rows.microbatch_size
    state_bytes = rows.per_parameter_bytes[:, None] * figures[..., 2]
    num_held = _held_microbatches(case, rows.pipeline, num_microbatches, num_layers.shape[1])
    held_bytes = num_held * figures[..., 3]
    needed = (state_bytes + held_bytes) / room
    worst = needed.max(axis=1)
    fits = worst <= 1.0
    if not fits.any():
        raise _misfit(case, rows, needed * room)
    rate = compute_rate_flops_per_s(case.domain, case.corrections, Parallelism())
    compute_s = (figures[..., 0] + figures[..., 1]) / (rate * gpus_per_device[:, None])
    gradient_bytes = GRADIENT_BYTES * figures[..., 2] / rows.tensor[:, None]
    single = case.job.workload(1, RECOMPUTATIONS[0]).message_bytes
    return Options(
        rows=rows.taken(fits),
        num_layers=num_layers[fits],
        compute_s=compute_s[fits],
        gradient_bytes=gradient_bytes[fits],
        message_bytes=(single * rows.microbatch_size / rows.data)[fits],
        num_microbatches=num_microbatches[fits],
        memory_fraction=worst[fits],
    )


def _held_microbatches(
    case: DomainCase,
    pipeline: np.ndarray,
    num_microbatches: np.ndarray,
    most_devices: int,
) -> np.ndarray:
    """Microbatches that each device holds at its worst (N, D): those of a warm-up and one more.

    A device with ``r`` stages behind it begins with ``floor(c r)`` forwards under 1F1B of factor
    ``c`` (`des.schedules.flush`); GPipe holds all.
    """
    if np.isinf(case.warm_up_factor):
        return np.asarray(np.repeat(num_microbatches[:, None], most_devices, axis=1))
    behind = case.stages_behind + pipeline[:, None] - 1 - np.arange(most_devices)
    warm_up = np.floor(case.warm_up_factor * np.maximum(behind, 0))
    return np.asarray(np.minimum(warm_up + 1, num_microbatches[:, None]))


def pass_steps(tensor: int | np.ndarray, num_layers: np.ndarray) -> np.ndarray:
    """Steps of rings over tensor groups in one pass through some layers, shaped as these."""
    return np.asarray(2 * TENSOR_ALL_REDUCES_PER_PASS * (tensor - 1) * num_layers)


def _device_figures(case: DomainCase, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Layers (N, D) and sums over them (N, D, 4), with the columns of `sums_of`."""
    found, place = np.unique(rows.pipeline, return_inverse=True)
    counts = tuple(found.tolist())
    of_setting, num_layers = _device_sums(case.job, case.first_layer, case.num_layers, counts)
    number = np.searchsorted(case.job.microbatch_sizes, rows.microbatch_size)
    figures: np.ndarray = of_setting[number, rows.is_full, place]
    return num_layers[place], figures


@lru_cache(maxsize=1024)
def _device_sums(
    job: TrainingJob, first_layer: int, num_layers: int, counts: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of each setting and number of devices (S, 2, C, D, 4), and layers (C, D)."""
    cuts = first_layer + _cuts(num_layers, counts)
    of_setting = np.array(
        [
            [np.diff(sums_of(job, size, name)[cuts], axis=1) for name in RECOMPUTATIONS]
            for size in job.microbatch_sizes
        ]
    )
    return of_setting, np.diff(cuts, axis=1)


@lru_cache(maxsize=4096)
def _cuts(num_layers: int, counts: tuple[int, ...]) -> np.ndarray:
    """Layers before each of the devices, and before the next, by number of devices (C, D + 1)."""
    found = np.full((len(counts), max(counts) + 1), num_layers)
    for row, count in enumerate(counts):
        found[row, 0] = 0
        found[row, 1 : count + 1] = np.cumsum(split_evenly(num_layers, count))
    return found


def _misfit(case: DomainCase, rows: Rows, needed_bytes: np.ndarray) -> InfeasiblePlacementError:
    """The error that names the option that lacks least, on its fullest GPU."""
    of_gpu = (needed_bytes / (rows.tensor * rows.data)[:, None]).max(axis=1)
    best = int(of_gpu.argmin())
    return InfeasiblePlacementError(
        f"domain {case.domain.name}: no local plan for {case.num_layers} layers fits; at best, "
        f"with {rows.options[best]}, a GPU must hold at most {case.room_bytes / 1e9:.1f} GB, got "
        f"{of_gpu[best] / 1e9:.1f} GB, {(of_gpu[best] - case.room_bytes) / 1e9:.1f} GB too many"
    )
