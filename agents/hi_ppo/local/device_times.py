"""Times of the devices of a domain in a row: of GPUs that are alike, or of those they are bound to.

Of GPUs that are alike, on one network or on equal servers of a domain, groups of a kind are as
quick as each other, so one of them is looked at, whatever their number.

Domains of more GPUs or servers than the local agent decides on get plans by rule: of all numbers
of GPUs in a tensor group, replicas and devices that fit into memory the quickest by these times.
GPUs are taken in the order of their numbers; inside servers that are known, and that tensor groups
fill, so that the slowest of these is the quickest that can be.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.devices.binding_times import BindingWork, device_table
from agents.hi_ppo.local.bound_plans import LocalPlan, server_gpus_of, wide_sums_s
from agents.hi_ppo.local.case import DomainCase, LocalCase, ServersCase, sums_of
from agents.hi_ppo.local.options import LocalOption, Options, pass_steps
from des import Corrections, Domain, Parallelism
from des.costs.local_borders import local_message_s
from des.costs.message_times import correct_inside
from des.costs.node_collectives import group_all_reduce_s
from des.costs.node_groups import data_group
from des.costs.stage_times import compute_rate_flops_per_s, tensor_parallel_s
from des.devices.gpus import GROUP_SIZES, GpuTopology
from des.devices.partitions import best_partition
from des.devices.rings import Real
from des.job.transformer import GRADIENT_BYTES
from des.plan.plan import split_evenly
from des.world.domain_load import IDLE


class DeviceTimes(NamedTuple):
    """Times of the devices of a domain in a row, in seconds.

    ``forward_s`` and ``backward_s`` (p,) are the passes of a microbatch, with the sums in tensor
    groups; ``transfer_s`` and ``latency_s`` (p - 1,) a message between neighbours, either way, on
    its wire and in flight; ``gradients_s`` the slowest sum of gradients.
    """

    forward_s: Real
    backward_s: Real
    transfer_s: Real
    latency_s: Real
    gradients_s: float

    @property
    def slowest_s(self) -> float:
        """Time of the slowest device or wire, which sets the pace of a pipeline. [s]"""
        return float((self.forward_s + self.backward_s).max(initial=self.transfer_s.max(initial=0)))

    @property
    def passage_s(self) -> float:
        """Time of a microbatch alone through all devices, there and back. [s]"""
        passes_s = self.forward_s.sum() + self.backward_s.sum()
        return float(passes_s + 2 * (self.transfer_s.sum() + self.latency_s.sum()))


def pipelined_s(case: DomainCase, option: LocalOption, times: DeviceTimes) -> float:
    """Time of an iteration by the formula of `agents.devices.binding_times`. [s]

    Stages of other domains are as slow as the slowest device of this one.
    """
    num_microbatches = case.job.num_sequences // option.microbatch_size
    others = num_microbatches - 1 + case.stages_before + case.stages_behind
    return others * times.slowest_s + times.passage_s + times.gradients_s


def alike_times(case: DomainCase, option: LocalOption) -> DeviceTimes:
    """Times of devices, by the costs of `des` on one level of wires or two.

    Inside a server whose GPUs are known, tensor groups have the slowest of the best disjoint rings
    of their size, replicas the best ring of the server, and neighbours in the pipeline the slowest
    pair of GPUs.
    """
    shape = option.parallelism
    server = case.server if isinstance(case, ServersCase) else None
    borders = _borders(case.domain, case.job, option, case.corrections, server)
    setting = option.microbatch_size, option.recomputation
    layers, figures = device_figures(case, setting, shape.pipeline)
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    workload = case.job.workload(option.microbatch_size, option.recomputation)
    in_groups = _joined(case.domain, server, "tensor", shape.tensor)
    exchange_s = tensor_parallel_s(workload, in_groups, shape, case.corrections)
    held_bytes = GRADIENT_BYTES * float(figures[:, 2].max()) / shape.tensor
    inside = correct_inside(_joined(case.domain, server, "all", shape.tensor), case.corrections)
    return DeviceTimes(
        forward_s=figures[:, 0] / rate + layers * exchange_s,
        backward_s=figures[:, 1] / rate + layers * exchange_s,
        transfer_s=np.array([transfer_s for transfer_s, _ in borders]),
        latency_s=np.array([latency_s for _, latency_s in borders]),
        gradients_s=max(
            group_all_reduce_s(held_bytes, data_group(inside, shape, device))
            for device in range(_period(case.domain, shape))
        ),
    )


def device_figures(
    case: DomainCase, setting: tuple[int, str], num_devices: int
) -> tuple[np.ndarray, np.ndarray]:
    """Layers of each device in a row (p,), and their sums (p, 4) with the columns of `sums_of`."""
    return _device_figures(case.job, (case.first_layer, case.num_layers), setting, num_devices)


@lru_cache(maxsize=4096)
def _device_figures(
    job: TrainingJob,
    layers_placed: tuple[int, int],
    setting: tuple[int, str],
    num_devices: int,
) -> tuple[np.ndarray, np.ndarray]:
    first_layer, num_layers = layers_placed
    layers = np.array(split_evenly(num_layers, num_devices))
    cuts = first_layer + np.concatenate([[0], np.cumsum(layers)])
    return layers, np.diff(sums_of(job, *setting)[cuts], axis=0)


@lru_cache(maxsize=4096)
def _borders(
    domain: Domain,
    job: TrainingJob,
    option: LocalOption,
    corrections: Corrections,
    server: GpuTopology | None,
) -> tuple[tuple[float, float], ...]:
    """Transfer and latency from each device to the next one. [s]"""
    shape = option.parallelism
    joined = _joined(domain, server, "pairs", shape.tensor)
    workload = job.workload(option.microbatch_size, option.recomputation)
    period = _period(domain, shape)
    kinds = []
    for device in range(min(period, shape.pipeline - 1)):
        border = local_message_s(workload, joined, shape, corrections, device=device)
        kinds.append((border.transfer_s, border.latency_s))
    return tuple(kinds[here % period] for here, _ in pairwise(range(shape.pipeline)))


def _period(domain: Domain, shape: Parallelism) -> int:
    """Devices after which all repeats: those of a node, or one where nodes or devices are whole.

    Between racks with figures of their own nothing does.
    """
    if domain.nodes is None:
        return 1
    if domain.nodes.has_priced_racks:
        return shape.pipeline
    fitting, rest = divmod(domain.nodes.gpus_per_node, shape.gpus_per_device)
    if fitting and not rest:
        return min(fitting, shape.pipeline)
    return 1 if not shape.gpus_per_device % domain.nodes.gpus_per_node else shape.pipeline


@lru_cache(maxsize=4096)
def _joined(domain: Domain, server: GpuTopology | None, who: str, tensor: int) -> Domain:
    """Return the domain with the inner network that tensor groups, pairs or all GPUs have."""
    if server is None or server.num_gpus == 1 or (who == "tensor" and tensor == 1):
        return domain
    if who == "pairs":
        bandwidth, latency_s = -server.link_order[-1][0], server.link_order[-1][1]
    elif who == "all" or tensor > server.num_gpus:
        bandwidth = float(server.wires.ring_bandwidth_bytes_per_s[-1])
        latency_s = float(server.wires.ring_latency_s[-1])
    else:
        row, groups = GROUP_SIZES.index(tensor), server.num_gpus // tensor
        bandwidth = float(server.best_groups[0][row, groups])
        latency_s = float(server.best_groups[1][row, groups])
    return replace(domain, intra_bandwidth_bytes_per_s=bandwidth, intra_latency_s=latency_s)


def device_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of the devices of a domain, on the GPUs that they are bound to if these are known."""
    if not isinstance(case, LocalCase):
        return alike_times(case, option)
    shape, gpus = option.parallelism, server_gpus_of(case)
    setting = option.microbatch_size, option.recomputation
    layers, figures = device_figures(case, setting, shape.pipeline)
    message_bytes = case.job.workload(*setting).message_bytes / shape.data
    steps, wide_s = 1.0 * pass_steps(shape.tensor, layers), np.zeros(shape.pipeline)
    if shape.tensor > gpus.per_server:
        steps, wide_s = wide_s, wide_sums_s(gpus, shape.tensor, message_bytes) * layers
    work = BindingWork(
        tensor=shape.tensor,
        data=shape.data,
        pipeline=shape.pipeline,
        compute_s=wide_s,
        tensor_steps=steps,
        tensor_bytes=message_bytes / shape.tensor,
        data_steps=2 * (shape.data - 1),
        data_bytes=GRADIENT_BYTES * figures[:, 2] / shape.tensor / shape.data,
        message_bytes=message_bytes,
        fill=0,
    )
    places = np.array(binding) % gpus.per_server
    sums_s, message_s, wire_s, gradients_s = device_table(work, gpus, places).T
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    return DeviceTimes(
        forward_s=figures[:, 0] / rate + sums_s,
        backward_s=figures[:, 1] / rate + sums_s,
        transfer_s=wire_s[1:],
        latency_s=(message_s - wire_s)[1:],
        gradients_s=float(gradients_s.max()),
    )


def times_by_rule(case: DomainCase, options: Options) -> Real:
    """Time of an iteration of options on GPUs that are alike (N,). [s]"""
    alone = replace(case, stages_before=0, stages_behind=0, load=IDLE)
    found, known = options.rows.options, _known_times(alone)
    known |= {option: alike_times(alone, option) for option in found if option not in known}
    return np.array([pipelined_s(case, option, known[option]) for option in found])


@lru_cache(maxsize=64)
def _known_times(_alone: DomainCase) -> dict[LocalOption, DeviceTimes]:
    """Times of options of a case that were asked for before."""
    return {}


def firsts_by_rule(
    case: DomainCase, options: Options, times_s: Real, groups: Sequence[Sequence[int]]
) -> list[LocalPlan]:
    """Return the first option of each group, bound to GPUs in the order of the rule."""
    return [
        LocalPlan(
            option=options.rows.options[row],
            binding=_binding(case, options.rows.options[row].parallelism),
            seconds_per_sequence=float(times_s[row]) / case.job.num_sequences,
        )
        for row, *_ in groups
    ]


def _binding(case: DomainCase, shape: Parallelism) -> tuple[int, ...]:
    """GPUs of the places of a shape: server by server, the best tensor groups of each in a row."""
    size = case.server.num_gpus if isinstance(case, ServersCase) else 1
    order: tuple[int, ...] = (0,)
    if isinstance(case, ServersCase):
        tensor = shape.tensor if size % shape.tensor == 0 else 1
        order = tuple(chain.from_iterable(best_partition(case.server, tensor)))
    places = (first + gpu for first in range(0, case.domain.num_gpus, size) for gpu in order)
    return tuple(islice(places, shape.num_gpus))
