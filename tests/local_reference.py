"""Times of local plans by the formulas of `des`, which those of the product are checked against."""

from collections.abc import Iterable

import numpy as np

from agents.hi_ppo.local.bound_plans import Joint, border_joint, domain_with, joint_of
from agents.hi_ppo.local.case import DomainCase, LocalCase
from agents.hi_ppo.local.device_times import DeviceTimes, alike_times, pipelined_s
from agents.hi_ppo.local.options import LocalOption
from des import Domain, Parallelism
from des.costs.local_borders import local_message_s
from des.costs.message_times import correct_inside
from des.costs.node_collectives import group_all_reduce_s
from des.costs.node_groups import data_group
from des.costs.stage_times import compute_rate_flops_per_s, tensor_parallel_s
from des.job.transformer import GRADIENT_BYTES
from des.job.workload import total
from des.plan.plan import split_evenly


def seconds_per_sequence(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> float:
    """Time of an iteration over its sequences, by the formulas of `des`. [s]

    Of GPUs that are alike one of each kind is looked at.

    Raises
    ------
    ValueError
        If the binding does not name a free GPU for each place, each once.
    """
    shape = option.parallelism
    if len(binding) != shape.num_gpus or not set(binding) <= set(case.free_gpus):
        raise ValueError(
            f"binding: must name {shape.num_gpus} of the free GPUs {case.free_gpus}, got {binding}"
        )
    if len(set(binding)) < len(binding):
        raise ValueError(f"binding: must name each GPU once, got {binding}")
    return (
        pipelined_s(case, option, reference_times(case, option, binding)) / case.job.num_sequences
    )


def reference_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of the devices of a domain, on the GPUs that they are bound to if these are known."""
    if isinstance(case, LocalCase):
        return _bound_times(case, option, binding)
    return alike_times(case, option)


def _bound_times(case: LocalCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of devices whose GPUs are known one by one."""
    shape = option.parallelism
    places = np.array(binding).reshape(shape.pipeline, shape.data, shape.tensor)
    workload = case.job.workload(option.microbatch_size, option.recomputation)
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    sums, first = workload.sums_before, case.first_layer
    passes_s, hops_s, gradient_s = [], [], []
    joined = _Joined(case)
    for device, num_layers in enumerate(split_evenly(case.num_layers, shape.pipeline)):
        forward_flops, backward_flops, num_parameters = (
            total(figure, first, num_layers)
            for figure in (sums.forward_flops, sums.backward_flops, sums.num_parameters)
        )
        exchange_s = max(
            tensor_parallel_s(workload, each, shape, case.corrections)
            for each in joined.by_groups(places[device])
        )
        within_s = num_layers * exchange_s
        passes_s.append((forward_flops / rate + within_s, backward_flops / rate + within_s))
        held_bytes = GRADIENT_BYTES * num_parameters / shape.tensor
        gradient_s.append(
            max(
                _gradients_s(case, shape, device, each, held_bytes)
                for each in joined.by_groups(places[device].T)
            )
        )
        if device > 0:
            messages = [
                local_message_s(workload, each, shape, case.corrections, device=device - 1)
                for each in joined.by_neighbours(places[device - 1], places[device])
            ]
            on_wire_s = max(one.transfer_s for one in messages)
            whole_s = max(one.transfer_s + one.latency_s for one in messages)
            hops_s.append((on_wire_s, whole_s - on_wire_s))
        first += num_layers
    forward_s, backward_s = np.array(passes_s).T
    transfer_s, latency_s = np.array(hops_s).reshape(-1, 2).T
    return DeviceTimes(forward_s, backward_s, transfer_s, latency_s, max(gradient_s))


class _Joined:
    """Domains of a case, one for each kind of wires that some of its GPUs have in common."""

    def __init__(self, case: LocalCase) -> None:
        self._case = case
        self._known: dict[Joint, Domain] = {}

    def by_groups(self, groups: Iterable[np.ndarray]) -> list[Domain]:
        """Return the domain with the wires of each kind of the groups."""
        return [self._with(joint) for joint in {joint_of(self._case, each) for each in groups}]

    def by_neighbours(self, before: np.ndarray, behind: np.ndarray) -> list[Domain]:
        """Return the domain with the wires of devices in a row: of each pair, or their border."""
        border = border_joint(self._case, before, behind)
        if border is not None:
            return [self._with(border)]
        return self.by_groups(np.column_stack((before.ravel(), behind.ravel())))

    def _with(self, joint: Joint) -> Domain:
        if joint not in self._known:
            self._known[joint] = domain_with(self._case.domain, joint)
        return self._known[joint]


def _gradients_s(
    case: LocalCase, shape: Parallelism, device: int, joined: Domain, held_bytes: float
) -> float:
    """Sum of the gradients of a device over a group of its replicas. [s]"""
    if shape.data == 1:
        return 0.0
    group = data_group(correct_inside(joined, case.corrections), shape, device)
    return group_all_reduce_s(held_bytes, group)
