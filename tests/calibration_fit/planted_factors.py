"""Cases with planted factors, and what is observed of them."""

import dataclasses

import numpy as np
from strategies import unit_workload

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.prediction import predict
from des import Corrections, Domain, Link, Parallelism, Placement, Plan, Topology

WAN_FACTORS = ("compute_time_factor", "wan_bandwidth_factor", "wan_latency_factor")
PLANTED = Corrections(
    compute_time_factor=1.08,
    intra_bandwidth_factor=0.8,
    intra_latency_factor=1.3,
    wan_bandwidth_factor=0.9,
    wan_latency_factor=1.25,
    message_overhead_s=0.004,
)
PLANTED_OUTSIDE = dataclasses.replace(PLANTED, intra_bandwidth_factor=1.0, intra_latency_factor=1.0)


def drawn_world(rng, *, latency_s=None):
    """Three domains with own links."""
    names = ("east", "middle", "west")
    domains = [
        Domain(
            name=name,
            num_gpus=4,
            gpu_peak_flops_per_s=1e12,
            gpu_memory_bytes=1e12,
            gpu_memory_bandwidth_bytes_per_s=1e12,
            attainable_fraction=0.5,
            intra_bandwidth_bytes_per_s=rng.uniform(2e9, 2e10),
            intra_latency_s=rng.uniform(1e-3, 1e-2),
        )
        for name in names
    ]
    links = [
        Link(
            source=source,
            target=target,
            bandwidth_bytes_per_s=rng.uniform(1e8, 1e9),
            latency_s=rng.uniform(0.01, 0.2) if latency_s is None else latency_s,
        )
        for source in names
        for target in names
        if source != target
    ]
    return Topology.of(domains, links)


def drawn_case(rng, *, is_parallel=False, work_factor=1.0, latency_s=None):
    """Three domains with own links, and layers, messages and microbatches of any size."""
    topology = drawn_world(rng, latency_s=latency_s)
    forward_flops = work_factor * rng.uniform(1e10, 3e11)
    workload = unit_workload(
        [(forward_flops, 2 * forward_flops)] * 6,
        num_microbatches=int(rng.integers(2, 9)),
        message_bytes=rng.uniform(1e6, 5e7),
    )
    cuts = sorted(rng.choice(5, 2, replace=False) + 1)
    counts = np.diff([0, *cuts, 6])
    placement = Placement.contiguous([int(each) for each in rng.permutation(3)], counts.tolist())
    parallelism = (Parallelism(tensor=2, data=2),) * 3 if is_parallel else ()
    schedule = ("1f1b", "gpipe")[int(rng.integers(2))]
    return PlacementCase(
        topology=topology,
        workload=workload,
        plan=Plan(placement=placement, schedule=schedule, parallelism=parallelism),
        granularity="gpu" if is_parallel else "domain",
    )


def drawn_cases(count, *, seed=0, **settings):
    rng = np.random.default_rng(seed)
    return [drawn_case(rng, **settings) for _ in range(count)]


def one_after_another(case, corrections):
    """A predictor in closed form: all passes, then all messages, of which none overlap."""
    workload, placement = case.workload, case.plan.placement
    rate = case.topology.domains[0].num_gpus * 0.5e12
    flops = sum(layer.forward_flops + layer.backward_flops for layer in workload.layers)
    compute_s = workload.num_microbatches * flops / rate * corrections.compute_time_factor
    sent_s = num_bytes = 0.0
    for here, there in zip(placement.stages, placement.stages[1:], strict=False):
        link = case.topology.link_between(here.domain, there.domain)
        bandwidth = link.bandwidth_bytes_per_s * corrections.wan_bandwidth_factor
        latency_s = link.latency_s * corrections.wan_latency_factor
        overhead_s = corrections.message_overhead_s
        sent_s += workload.num_microbatches * (
            overhead_s + workload.message_bytes / bandwidth + latency_s
        )
        num_bytes += workload.num_microbatches * workload.message_bytes
    return Measurement(
        makespan_s=compute_s + sent_s, communication_bytes=num_bytes, exposed_s=(sent_s, 0.0, 0.0)
    )


def observed(cases, corrections, *, noise=0.0, predictor=predict, seed=0):
    """What a reference would measure that is `predictor` with corrections, but for noise."""
    rng = np.random.default_rng(seed)
    found = []
    for case in cases:
        exact = predictor(case, corrections)
        whole, exposed = 1.0 + noise * rng.standard_normal(2)
        found.append(
            dataclasses.replace(
                exact,
                makespan_s=exact.makespan_s * whole,
                exposed_s=tuple(each * whole * exposed for each in exact.exposed_s),
            )
        )
    return found
