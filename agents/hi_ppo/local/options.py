"""All local plans that fit into memory, in arrays: one row per plan."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.case import RECOMPUTATIONS, DomainCase, LocalCase, sums_of
from agents.hi_ppo.local.option_rows import Rows, is_worth_while, rows_of
from des import InfeasiblePlacementError, Nodes, Parallelism
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS, compute_rate_flops_per_s
from des.job.transformer import GRADIENT_BYTES
from des.plan.plan import split_evenly


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
