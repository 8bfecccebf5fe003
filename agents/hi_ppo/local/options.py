"""All local plans that fit into memory, in arrays: one row per plan."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from agents.decision.training_job import MICROBATCH_SIZES, TrainingJob
from agents.hi_ppo.local.case import MOST_LOCAL_GPUS, RECOMPUTATIONS, DomainCase, LocalCase, sums_of
from des import InfeasiblePlacementError, Parallelism
from des.costs.memory import bytes_per_parameter
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS, compute_rate_flops_per_s
from des.devices.gpus import GROUP_SIZES
from des.job.transformer import GRADIENT_BYTES
from des.plan.plan import split_evenly


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
    """All N options of a number of free GPUs; arrays (N,), flags as 0 and 1.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The N options of a case that fit, and what they ask of up to 8 devices each.

    Attributes
    ----------
    rows
        Their parallelism and so on.
    num_layers, compute_s, gradient_bytes
        Layers (N, 8) of the devices in a row, time of a microbatch's passes without exchanges [s],
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


@lru_cache(maxsize=MOST_LOCAL_GPUS)
def rows_of(num_free: int) -> Rows:
    """All options of a number of free GPUs, also those that exceed the memory.

    A replica works on whole sequences, so ``data`` divides the microbatch. ``tensor`` is a power of
    two, which divides the heads of all presets. One optimiser for several replicas is an option
    where there are several.
    """
    options = []
    for size, name in product(MICROBATCH_SIZES, RECOMPUTATIONS):
        for tensor, data in product(GROUP_SIZES, GROUP_SIZES):
            for pipeline in range(1, num_free // (tensor * data) + 1) if data <= size else ():
                for is_sharded in (False, True) if data > 1 else (False,):
                    parallelism = Parallelism(
                        tensor=tensor,
                        data=data,
                        pipeline=pipeline,
                        sharding="optimiser" if is_sharded else "none",
                    )
                    options.append(
                        LocalOption(
                            parallelism=parallelism, microbatch_size=size, recomputation=name
                        )
                    )
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


@lru_cache(maxsize=4096)
def _cuts(num_layers: int) -> np.ndarray:
    """Layers before each of up to 8 devices, and before the next, by number of devices (9, 9)."""
    found = np.full((MOST_LOCAL_GPUS + 1, MOST_LOCAL_GPUS + 1), num_layers)
    for count in range(1, MOST_LOCAL_GPUS + 1):
        found[count, 0] = 0
        found[count, 1 : count + 1] = np.cumsum(split_evenly(num_layers, count))
    return found


def options_of(case: LocalCase) -> Options:
    """Return all options of a case that fit into memory, by the formulas of `des.costs.memory`.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, naming what the one lacks that lacks least.
    """
    num_free = len(case.gpus.free)
    rows = rows_of(num_free)
    can_be = rows.pipeline <= case.num_layers
    if case.job.microbatch_sizes != MICROBATCH_SIZES:
        can_be &= np.isin(rows.microbatch_size, case.job.microbatch_sizes)
    rows = _taken(num_free, can_be.tobytes())
    num_layers, figures = _device_figures(case, rows)
    gpus_per_device = rows.tensor * rows.data
    room = case.room_bytes * gpus_per_device[:, None]
    num_microbatches = case.job.num_sequences // rows.microbatch_size
    state_bytes = rows.per_parameter_bytes[:, None] * figures[..., 2]
    held_bytes = held_microbatches(case, rows.pipeline, num_microbatches) * figures[..., 3]
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
        rows=_taken(num_free, _both(can_be, fits)),
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


def tensor_steps(options: Options) -> np.ndarray:
    """Steps of rings over tensor groups that a microbatch takes, forward and back (N, 8)."""
    per_layer = 2 * TENSOR_ALL_REDUCES_PER_PASS * 2 * (options.rows.tensor - 1)
    return np.asarray(per_layer[:, None] * options.num_layers)


def _device_figures(case: LocalCase, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Layers (N, 8) and sums over them (N, 8, 4), with the columns of `sums_of`."""
    of_setting, num_layers = _device_sums(case.job, case.first_layer, case.num_layers)
    number = np.searchsorted(case.job.microbatch_sizes, rows.microbatch_size)
    figures: np.ndarray = of_setting[number, rows.is_full, rows.pipeline]
    return num_layers[rows.pipeline], figures


@lru_cache(maxsize=1024)
def _device_sums(
    job: TrainingJob, first_layer: int, num_layers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of each setting and number of devices (S, 2, 9, 8, 4), and layers (9, 8)."""
    cuts = first_layer + _cuts(num_layers)
    of_setting = np.array(
        [
            [np.diff(sums_of(job, size, name)[cuts], axis=1) for name in RECOMPUTATIONS]
            for size in job.microbatch_sizes
        ]
    )
    return of_setting, np.diff(cuts, axis=1)


def _both(can_be: np.ndarray, fits: np.ndarray) -> bytes:
    """Flags of all rows: those of some of them are given for these alone."""
    chosen = can_be.copy()
    chosen[can_be] = fits
    return chosen.tobytes()


@lru_cache(maxsize=4096)
def _taken(num_free: int, flags: bytes) -> Rows:
    """Some of all rows, by a flag each: which fit is much the same from case to case."""
    rows, chosen = rows_of(num_free), np.frombuffer(flags, dtype=np.bool_)
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
