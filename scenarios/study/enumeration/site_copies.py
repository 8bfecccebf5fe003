"""All copies of the model over sites: pipelines of equal stages, each on sites of its own."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from math import inf

import numpy as np

from agents.search.kernels.layouts import num_held
from agents.search.kernels.records import SiteFigures
from agents.search.settings import BoundSetting
from agents.search.workspace import Workspace
from agents.trainers.plan_checks import check_plan
from agents.trainers.trainer import Trainer
from des import (
    GradientExchange,
    InfeasiblePlacementError,
    Parallelism,
    Placement,
    Plan,
    check_memory,
)
from des.compiled.simulate import makespan_compiled_s
from des.job.transformer import WEIGHT_BYTES
from des.plan.plan import split_evenly
from des.program.lowering import lower
from scenarios.study.enumeration.bounds import Least, plain_bound_s

Blocks = tuple[tuple[int, ...], ...]
"""Sites of each copy, in the order of the model."""


def blocks_of_sites(num_sites: int) -> list[Blocks]:
    """All ways to put at least two copies on some sites, each with its sites in each order.

    Examples
    --------
    >>> blocks_of_sites(2)
    [((0,), (1,)), ((1,), (0,))]
    """
    found: dict[Blocks, None] = {}
    for count in range(2, num_sites + 1):
        for order in permutations(range(num_sites), count):
            for cuts in range(1, 2 ** (count - 1)):
                blocks: list[tuple[int, ...]] = [order[:1]]
                for place, site in enumerate(order[1:]):
                    if cuts >> place & 1:
                        blocks.append((site,))
                    else:
                        blocks[-1] = (*blocks[-1], site)
                found[tuple(blocks)] = None
    return list(found)


def best_copies(
    workspace: Workspace,
    trainer: Trainer,
    setting: BoundSetting,
    limit_s: float,
    counts: np.ndarray,
) -> tuple[float, Plan | None]:
    """Return the quickest copies below a limit, or the limit and None. [s]

    The exchange between copies can be waited for longest in two ways. Gradients of the first stage
    are ready when the pipeline ends, and then go round the ring of copies. And over the slowest
    link of copies on a site each go those of all stages, after all work of the least busy one.
    """
    best: Plan | None = None
    for blocks in blocks_of_sites(workspace.topology.num_domains):
        own = replace(setting, num_replicas=len(blocks))
        together = own.microbatch_size * own.degrees.data * len(blocks)
        if workspace.job.num_sequences % together:
            continue
        for devices in _devices(workspace, own, blocks, limit_s):
            for is_sharded in (True,) if own.degrees.data > 1 else (True, False):
                counts[0] += 1
                if _bound_s(workspace, own, blocks, devices, is_sharded=is_sharded) >= limit_s:
                    continue
                counts[1] += 1
                plan = _plan(workspace, own, blocks, devices, is_sharded=is_sharded)
                found_s = _time_s(workspace, trainer, own, plan)
                if found_s < limit_s:
                    limit_s, best = found_s, plan
    return limit_s, best


def _devices(
    workspace: Workspace, setting: BoundSetting, blocks: Blocks, limit_s: float
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Stages' GPUs of each site of each block, of all blocks equally many.

    Left out are numbers by which the least layers of a device take longer than the limit, or by
    which the first device of a copy has no room for them and for the activations that it holds.
    """
    figures, rules = workspace.figures(setting), workspace.rules(setting, is_whole=True)
    sites = [site for block in blocks for site in block]
    least, num_layers = Least.of(figures), workspace.job.layer_count
    most = min(int(figures.num_devices[list(block)].sum()) for block in blocks)
    start = max(*map(len, blocks), 1 if setting.num_chunks == 1 else 2)
    for num_workers in range(start, min(most, num_layers // setting.num_chunks) + 1):
        count = num_layers // (num_workers * setting.num_chunks)
        whole = count * setting.num_chunks
        if any(
            rules.num_microbatches * whole * least.passes_s[site].sum() >= limit_s
            or least.state_bytes[site, whole] > figures.room_bytes[site]
            for site in sites
        ):
            continue
        held = num_held(rules, num_workers, 0)
        needed = [
            least.state_bytes[block[0], whole] + held * least.kept_bytes[block[0], count]
            for block in blocks
        ]
        if all(
            own <= figures.room_bytes[block[0]] for own, block in zip(needed, blocks, strict=True)
        ):
            yield from _shares(figures.num_devices, blocks, num_workers)


def _shares(
    num_devices: np.ndarray, blocks: Blocks, num_workers: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All ways in which the sites of each block can have that number of devices together."""
    if not blocks:
        yield ()
        return
    for first in _of_block(num_devices, blocks[0], num_workers):
        for rest in _shares(num_devices, blocks[1:], num_workers):
            yield (first, *rest)


def _of_block(
    num_devices: np.ndarray, block: tuple[int, ...], num_workers: int
) -> Iterator[tuple[int, ...]]:
    if len(block) == 1:
        if 1 <= num_workers <= num_devices[block[0]]:
            yield (num_workers,)
        return
    for own in range(1, min(int(num_devices[block[0]]), num_workers - 1) + 1):
        for rest in _of_block(num_devices, block[1:], num_workers - own):
            yield (own, *rest)


def _layers(
    workspace: Workspace, setting: BoundSetting, devices: tuple[int, ...]
) -> list[list[int]]:
    """Layers of each site of a block, chunk by chunk, of stages that are as even as can be."""
    num_workers = sum(devices)
    even = split_evenly(workspace.job.layer_count, num_workers * setting.num_chunks)
    ends = np.cumsum(devices).tolist()
    return [
        [
            sum(even[chunk * num_workers + start : chunk * num_workers + end])
            for start, end in zip((0, *ends), ends, strict=False)
        ]
        for chunk in range(setting.num_chunks)
    ]


def _bound_s(
    workspace: Workspace,
    setting: BoundSetting,
    blocks: Blocks,
    devices: tuple[tuple[int, ...], ...],
    *,
    is_sharded: bool,
) -> float:
    """Least time of copies, by their work and by their exchange. [s]"""
    figures, rules = workspace.figures(setting), workspace.rules(setting, is_whole=True)
    workload = setting.workload(workspace.job)
    parameters = workload.sums_before.num_parameters
    each = WEIGHT_BYTES if is_sharded else workload.gradient_bytes
    round_s = (workload.gradient_bytes + each) * (len(blocks) - 1) / len(blocks)
    starts = [block[0] for block in blocks]
    round_s *= max(
        figures.outer_s[here, there, 0] / workload.message_bytes
        for here, there in zip(starts, (*starts[1:], starts[0]), strict=True)
    )
    longest_s, ready_s = 0.0, inf
    for block, own in zip(blocks, devices, strict=True):
        num_stages = sum(own) * setting.num_chunks
        totals = np.array(_layers(workspace, setting, own)).sum(axis=0)
        if setting.num_chunks == 1:
            split = np.stack([np.array(own), totals], axis=1)
            work_s = plain_bound_s(figures, rules, np.array(block), split)
        else:
            work_s = rules.num_microbatches * max(
                -(-total // count) * _layer_s(figures, site)
                for site, count, total in zip(block, own, totals.tolist(), strict=True)
            )
        first = split_evenly(workspace.job.layer_count, num_stages)[0]
        longest_s = max(longest_s, work_s + round_s * parameters[first])
        least_s = workspace.job.layer_count // num_stages * _layer_s(figures, block[0])
        ready_s = min(ready_s, rules.num_microbatches * least_s)
    if all(len(block) == 1 for block in blocks):
        longest_s = max(longest_s, ready_s + round_s * parameters[-1])
    return longest_s


def _layer_s(figures: SiteFigures, site: int) -> float:
    """Time of F and B of the quickest layer of a site. [s]"""
    return float(np.diff(figures.passes_s[site, :2], axis=-1).min(axis=-1).sum())


def _plan(
    workspace: Workspace,
    setting: BoundSetting,
    blocks: Blocks,
    devices: tuple[tuple[int, ...], ...],
    *,
    is_sharded: bool,
) -> Plan:
    parallelism = [Parallelism()] * workspace.topology.num_domains
    placements = []
    for block, own in zip(blocks, devices, strict=True):
        is_alone = len(block) == 1 and own[0] > 1
        for site, count in zip(block, own, strict=True):
            chunks = setting.num_chunks if is_alone else 1
            parallelism[site] = setting.degrees.parallelism(count, chunks)
        if len(block) == 1:
            placements.append(Placement.contiguous(block, [workspace.job.layer_count]))
        else:
            counts = [count for chunk in _layers(workspace, setting, own) for count in chunk]
            placements.append(Placement.contiguous(list(block) * setting.num_chunks, counts))
    return Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        schedule=setting.schedule_name(sum(devices[0])),
        parallelism=tuple(parallelism),
        exchange=GradientExchange(sharded=is_sharded),
        sends="blocking" if setting.is_blocking else "overlapped",
    )


def _time_s(workspace: Workspace, trainer: Trainer, setting: BoundSetting, plan: Plan) -> float:
    """Time of a step; infinite where the trainer refuses the plan or memory is missing. [s]"""
    workload = setting.workload(workspace.job)
    try:
        check_memory(workspace.topology, workload, plan)
    except InfeasiblePlacementError:
        return inf
    try:
        check_plan(trainer, workspace.topology, workload, plan)
    except ValueError:  # the trainer refuses it
        return inf
    program = lower(workspace.topology, workload, plan, workspace.corrections)
    return makespan_compiled_s(workspace.topology, program, workspace.corrections)
