"""All local plans that fit into memory, in arrays: one row per plan."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from agents.decision.training_job import MICROBATCH_SIZES, TrainingJob
from agents.hi_ppo.local.case import MOST_LOCAL_GPUS, RECOMPUTATIONS, DomainCase, LocalCase, sums_of
from agents.hi_ppo.local.option_rows import Rows, is_worth_while, rows_of, rows_over
from des import InfeasiblePlacementError, Nodes, Parallelism
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS, compute_rate_flops_per_s
from des.job.transformer import GRADIENT_BYTES
from des.plan.plan import split_evenly

_ON_ONE_SERVER = tuple(range(1, MOST_LOCAL_GPUS + 1))
"""Devices in a row on one server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The N options of a case that fit, and the work of up to D devices each.

    D is 8 on one server, on several the devices of the longest pipeline.

    Attributes
    ----------
    rows
        Their parallelism and so on.
    num_layers, compute_s, gradient_bytes
        Layers (N, D) of the devices in a row, time of a microbatch's passes without exchanges [s],
        and gradients that one GPU holds [bytes]. 0 behind the last device.
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


class _Kind(NamedTuple):
    """GPUs that have the same options: of one server, or with the nodes of several."""

    num_gpus: int
    nodes: Nodes | None = None

    @property
    def rows(self) -> Rows:
        """All options, also those that exceed the memory."""
        return rows_of(self.num_gpus) if self.nodes is None else rows_over(*self)


def _kind_of(case: LocalCase) -> _Kind:
    nodes = case.domain.nodes
    if nodes is None or case.num_servers == 1:
        return _Kind(len(case.gpus.free))
    return _Kind(case.domain.num_gpus, _shape_of(nodes.gpus_per_node, nodes.tensor_across_nodes))


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


def options_of(case: LocalCase) -> Options:
    """Return all options of a case that fit into memory, by the formulas of `des.costs.memory`.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, naming what the one lacks that lacks least.
    """
    kind = _kind_of(case)
    rows = kind.rows
    if kind.nodes is None:
        can_be = rows.pipeline <= case.num_layers
    else:
        can_be = is_worth_while(rows.pipeline, case.num_layers)
    if case.job.microbatch_sizes != MICROBATCH_SIZES:
        can_be &= np.isin(rows.microbatch_size, case.job.microbatch_sizes)
    rows = _taken(kind, can_be.tobytes())
    num_layers, figures = _device_figures(case, rows)
    gpus_per_device = rows.tensor * rows.data
    room = case.room_bytes * gpus_per_device[:, None]
    num_microbatches = case.job.num_sequences // rows.microbatch_size
    state_bytes = rows.per_parameter_bytes[:, None] * figures[..., 2]
    most_devices = num_layers.shape[1]
    num_held = held_microbatches(case, rows.pipeline, num_microbatches, most_devices)
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
        rows=_taken(kind, _both(can_be, fits)),
        num_layers=num_layers[fits],
        compute_s=compute_s[fits],
        gradient_bytes=gradient_bytes[fits],
        message_bytes=(single * rows.microbatch_size / rows.data)[fits],
        num_microbatches=num_microbatches[fits],
        memory_fraction=worst[fits],
    )


def held_microbatches(
    case: DomainCase,
    pipeline: np.ndarray,
    num_microbatches: np.ndarray,
    most_devices: int = MOST_LOCAL_GPUS,
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


def _device_figures(case: LocalCase, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Layers (N, D) and sums over them (N, D, 4), with the columns of `sums_of`."""
    if case.num_servers == 1:
        counts, place = _ON_ONE_SERVER, rows.pipeline - 1
    else:
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


def _both(can_be: np.ndarray, fits: np.ndarray) -> bytes:
    """Flags of all rows: those of some of them are given for these alone."""
    chosen = can_be.copy()
    chosen[can_be] = fits
    return chosen.tobytes()


@lru_cache(maxsize=4096)
def _taken(kind: _Kind, flags: bytes) -> Rows:
    """Some of all rows, by a flag each: which fit is much the same from case to case."""
    rows, chosen = kind.rows, np.frombuffer(flags, dtype=np.bool_)
    if chosen.all():
        return rows
    options = tuple(rows.options[index] for index in np.flatnonzero(chosen))
    return Rows(options, *(each[chosen] for each in rows[1:]))


def _misfit(case: LocalCase, rows: Rows, needed_bytes: np.ndarray) -> InfeasiblePlacementError:
    """The error that names the option that lacks least, on its fullest GPU."""
    of_gpu = (needed_bytes / (rows.tensor * rows.data)[:, None]).max(axis=1)
    best = int(of_gpu.argmin())
    return InfeasiblePlacementError(
        f"domain {case.domain.name}: no local plan for {case.num_layers} layers fits; at best, "
        f"with {rows.options[best]}, a GPU must hold at most {case.room_bytes / 1e9:.1f} GB, got "
        f"{of_gpu[best] / 1e9:.1f} GB, {(of_gpu[best] - case.room_bytes) / 1e9:.1f} GB too many"
    )
