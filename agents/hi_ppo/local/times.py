"""Iteration time as a function of one domain's local plan, and the best local plan there is.

A pipeline of stages as slow as the slowest device of this domain takes, for ``m`` microbatches,

    T = (m - 1 + others) max(d_1, ..., d_p, w_2, ..., w_p) + d_1 + ... + d_p + 2 (h_2 + ... + h_p)
        + max(g_1, ..., g_p)

- ``d_i`` both passes of a microbatch on device ``i``: its FLOPs over its speed, and four ring
  all-reduces a layer over its slowest tensor group (`des.costs.stage_times.tensor_parallel_s`),
- ``h_i`` a message from device ``i - 1``, ``w_i`` what its wire is busy, both over the slowest pair
  of partners (`des.costs.local_borders.local_message_s`), forward and back as a gradient,
- ``g_i`` the ring all-reduce of device ``i``'s gradients over its slowest group of replicas, which
  is exposed: `des` starts it when the last backward pass ends, if a stage is one bucket,
- ``others`` stages of other domains. For equal devices on free links this is the makespan of 1F1B,
  ``(m + p - 1) d``.

What is minimised is T over the sequences of an iteration. Pairs and rings do not share wires here:
two groups whose rings pass the same link between processors both get all of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from agents.hi_ppo.local.alike_gpus import DeviceTimes, alike_times, pipelined_s
from agents.hi_ppo.local.best_binding import best_binding
from agents.hi_ppo.local.binding import BindingWork, quick_binding
from agents.hi_ppo.local.case import DomainCase, LocalCase, ServersCase
from agents.hi_ppo.local.options import LocalOption, Options, options_of, tensor_steps
from agents.hi_ppo.local.quickest import BindingWorks, quickest_binding, work_at
from des import Domain
from des.costs.collectives import ring_all_reduce_s
from des.costs.local_borders import local_message_s
from des.costs.message_times import corrected_inside
from des.costs.stage_times import compute_rate_flops_per_s, tensor_parallel_s
from des.devices.rings import Whole, Wires
from des.job.transformer import GRADIENT_BYTES
from des.job.workload import total
from des.plan.plan import split_evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlan:
    """An option bound to GPUs, with its time.

    ``binding`` has a GPU for each place, see `agents.hi_ppo.local.binding`.
    """

    option: LocalOption
    binding: tuple[int, ...]
    seconds_per_sequence: float


def works_of(case: LocalCase, options: Options) -> BindingWorks:
    """Return all options of a case in numbers for the compiled code."""
    rows = options.rows
    return BindingWorks(
        tensor=rows.tensor,
        data=rows.data,
        pipeline=rows.pipeline,
        compute_s=options.compute_s,
        tensor_steps=tensor_steps(options).astype(np.float64),
        data_bytes=options.gradient_bytes / rows.data[:, None],
        message_bytes=options.message_bytes,
        fill=options.num_microbatches - 1 + case.stages_before + case.stages_behind,
    )


def work_of(case: LocalCase, options: Options, chosen: Iterable[int]) -> list[BindingWork]:
    """Return some of the options of a case in numbers."""
    works = works_of(case, options)
    return [work_at(works, row) for row in chosen]


def wires_of(case: LocalCase) -> Wires:
    """Wires between the GPUs of a case, with calibrated figures."""
    wires, factors = case.gpus.wires, case.corrections
    bandwidth, latency = factors.intra_bandwidth_factor, factors.intra_latency_factor
    if bandwidth == latency == 1.0:
        return wires
    return Wires(
        wires.bandwidth_bytes_per_s * bandwidth,
        wires.latency_s * latency,
        wires.ring_bandwidth_bytes_per_s * bandwidth,
        wires.ring_latency_s * latency,
    )


def quickly_bound(case: LocalCase, options: Options, chosen: Sequence[int]) -> LocalPlan:
    """Bind some of the options by `quick_binding` and return the quickest, the first of equals."""
    free = np.array(case.gpus.free)
    binding = np.empty_like(free)
    best, best_s = quickest_binding(
        works_of(case, options), np.array(chosen), wires_of(case), free, binding
    )
    return _plan(case, options.rows.options[best], binding, best_s)


def exhaustive(case: LocalCase, options: Options | None = None) -> LocalPlan:
    """Return the best of all options with all bindings: the optimal local plan.

    Raises
    ------
    InfeasiblePlacementError
        If none fits into memory.
    """
    options = options_of(case) if options is None else options
    rows = range(len(options))
    works, wires, free = work_of(case, options, rows), wires_of(case), np.array(case.gpus.free)
    bindings = np.empty((len(options), len(free)), dtype=np.int64)
    quick_s = [quick_binding(works[row], wires, free, bindings[row]) for row in rows]
    best = int(np.argmin(quick_s))
    best_s, kept, binding = quick_s[best], bindings[best], np.empty_like(free)
    for row in np.argsort(quick_s, kind="stable").tolist():
        found_s = best_binding(works[row], wires, free, best_s, binding)
        if found_s < best_s:
            best, best_s, kept = row, found_s, binding.copy()
    return _plan(case, options.rows.options[best], kept, best_s)


def seconds_per_sequence(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> float:
    """Time of an iteration over its sequences, by the formulas of `des`. [s]

    For GPUs that are known one by one the compiled code does the same; this is what it is checked
    against. Of GPUs that are alike one of each kind is looked at.

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
    return pipelined_s(case, option, device_times(case, option, binding)) / case.job.num_sequences


def device_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of the devices of a domain, on the GPUs that they are bound to if these are known."""
    if isinstance(case, LocalCase):
        return _bound_times(case, option, binding)
    return alike_times(case, option)


def _bound_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of devices whose GPUs are known one by one."""
    shape = option.parallelism
    places = np.array(binding).reshape(shape.pipeline, shape.data, shape.tensor)
    workload = case.job.workload(option.microbatch_size, option.recomputation)
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    sums, first = workload.sums_before, case.first_layer
    passes_s, hops_s, gradient_s = [], [], []
    for device, num_layers in enumerate(split_evenly(case.num_layers, shape.pipeline)):
        forward_flops, backward_flops, num_parameters = (
            total(figure, first, num_layers)
            for figure in (sums.forward_flops, sums.backward_flops, sums.num_parameters)
        )
        exchange_s = max(
            tensor_parallel_s(workload, joined, shape, case.corrections)
            for joined in {joined_by(case, group) for group in places[device]}
        )
        within_s = num_layers * exchange_s
        passes_s.append((forward_flops / rate + within_s, backward_flops / rate + within_s))
        gradient_s.append(
            max(
                _gradient_s(
                    case, GRADIENT_BYTES * num_parameters / shape.tensor, shape.data, joined
                )
                for joined in {joined_by(case, group) for group in places[device].T}
            )
        )
        pairs = np.column_stack((places[device - 1].ravel(), places[device].ravel()))
        messages = [
            local_message_s(workload, joined, shape, case.corrections, device=device - 1)
            for joined in ({joined_by(case, pair) for pair in pairs} if device > 0 else ())
        ]
        if messages:
            on_wire_s = max(one.transfer_s for one in messages)
            whole_s = max(one.transfer_s + one.latency_s for one in messages)
            hops_s.append((on_wire_s, whole_s - on_wire_s))
        first += num_layers
    forward_s, backward_s = np.array(passes_s).T
    transfer_s, latency_s = np.array(hops_s).reshape(-1, 2).T
    return DeviceTimes(forward_s, backward_s, transfer_s, latency_s, max(gradient_s))


def joined_by(case: DomainCase, group: np.ndarray) -> Domain:
    """Return the domain with the inner network that the best ring of some GPUs has.

    `des` reckons with one figure per domain; this is how it gets that of a binding. A GPU alone has
    the network of the domain, which it does not use; so have GPUs that are not known one by one,
    and those of several servers.
    """
    if len(group) == 1 or not isinstance(case, LocalCase | ServersCase):
        return case.domain
    gpus = case.gpus if isinstance(case, LocalCase) else case.server
    servers = [gpu // gpus.num_gpus for gpu in group.tolist()]
    if len(set(servers)) > 1:
        return case.domain
    mask = sum(1 << gpu % gpus.num_gpus for gpu in group.tolist())
    bandwidth, latency_s = gpus.wires.ring_bandwidth_bytes_per_s, gpus.wires.ring_latency_s
    return _with_network(case.domain, float(bandwidth[mask]), float(latency_s[mask]))


@lru_cache(maxsize=4096)
def _with_network(domain: Domain, bandwidth_bytes_per_s: float, latency_s: float) -> Domain:
    return replace(
        domain,
        intra_bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        intra_latency_s=latency_s,
    )


def _gradient_s(case: DomainCase, num_bytes: float, num_replicas: int, joined: Domain) -> float:
    figures = corrected_inside(joined, case.corrections)
    return ring_all_reduce_s(
        num_bytes, num_replicas, figures.intra_bandwidth_bytes_per_s, figures.intra_latency_s
    )


def _plan(case: LocalCase, option: LocalOption, binding: Whole, iteration_s: float) -> LocalPlan:
    return LocalPlan(
        option=option,
        binding=tuple(binding[: option.parallelism.num_gpus].tolist()),
        seconds_per_sequence=iteration_s / case.job.num_sequences,
    )
