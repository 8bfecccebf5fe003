"""Figures of a world before any plan: its transfer/compute ratio, and a least time."""

import math
from collections.abc import Iterable

from des import Topology, Workload


def transfer_compute_ratio_of(workload: Workload, topology: Topology) -> float:
    """Transfer time of an activation over the forward time of an even stage, R.

    Parameters
    ----------
    workload
        Its message and its forward FLOPs count, both of one microbatch.
    topology
        Links at their base bandwidths, domains at their attainable speeds; a movement is not
        looked at.

    Returns
    -------
    float
        ``R = (message / mean bandwidth) / mean over domains of (forward FLOPs / K / speed)``.

    Raises
    ------
    ValueError
        If the topology has no links.

    Notes
    -----
    For equal domains of ``F`` FLOP/s this is ``h F / (B N / K)`` [1]_ with hidden size ``h``, mean
    bandwidth ``B`` and ``2 N`` forward FLOPs a token. ``N`` is the number of parameters but for
    what a layer does besides multiplying by its weights: at 4096 tokens ``2 N`` is 1.14 (Llama 2
    7B) to 1.04 times (Llama 3 405B) twice the parameters, and R that much lower.

    `des.IterationResult.transfer_compute_ratio` is the same for an even split over all domains in
    a row where links are equal. Of a plan on unequal links it averages the *times* on the borders
    that are used; here bandwidths are averaged, over all links. Its latencies, queues and TCP
    windows are left out here as well.

    References
    ----------
    .. [1] CrossPipe, ATC'25: the ratio of communication to computation of a pipeline over slow
       links.

    Examples
    --------
    A Llama 2 7B on three domains of 0.48 PFLOP/s, links of 5, 3 and 2 Gbit/s:

    >>> from des import build_workload, read_topology
    >>> world, job = read_topology("east_central_west"), build_workload("llama2_7b")
    >>> round(transfer_compute_ratio_of(job, world), 3)
    1.843
    """
    transfer_s = workload.message_bytes / mean_bandwidth_bytes_per_s(topology)
    forward_s = _even_share_s(sum(workload.forward_flops), topology)
    return transfer_s / forward_s


def speed_per_bandwidth(workload: Workload, num_domains: int, ratio: float) -> float:
    """FLOP/s that a domain needs for each byte/s of mean bandwidth, for a ratio R. [FLOP/byte]

    Examples
    --------
    A stage of 8 FLOPs and a message of 2 bytes: at 1 byte/s and 4 FLOP/s either takes 2 s.

    >>> from des import Layer, Workload
    >>> layer = Layer(
    ...     forward_flops=16.0, input_gradient_flops=16.0, weight_gradient_flops=16.0,
    ...     num_parameters=1.0, activation_bytes=1.0, weight_input_bytes=1.0,
    ... )
    >>> job = Workload(
    ...     name="job", layers=(layer,), num_microbatches=1, tokens_per_microbatch=1,
    ...     message_bytes=2.0,
    ... )
    >>> speed_per_bandwidth(job, 2, 1.0)
    4.0
    """
    return ratio * sum(workload.forward_flops) / num_domains / workload.message_bytes


def nominal_iteration_s(workload: Workload, topology: Topology, num_stages: int) -> float:
    """Least time of an iteration on an even pipeline of equal stages and links. [s]

    Parameters
    ----------
    num_stages
        Domains in use, of mean speed, joined by links of mean bandwidth and latency.

    Notes
    -----
    With ``k`` stages, ``M`` microbatches, passes of ``f`` and ``b``, and borders of ``t`` and a
    latency ``l``: ``(M - 1) max(f + b, t) + k (f + b) + 2 (k - 1) (t + l)``. The first microbatch
    goes down and up once; each other one needs a turn of the slower of device and wire. So no
    schedule with backward passes in one piece is quicker. A deep warm-up comes near: ``1f1b_4x``
    takes at most 1.5 times as long in all cases that
    `tests/scenarios_suites/test_suite_ratios.py` draws.

    Examples
    --------
    >>> from des import build_workload, read_topology
    >>> world, job = read_topology("east_central_west"), build_workload("llama2_7b")
    >>> [round(nominal_iteration_s(job, world, count), 2) for count in (1, 2, 3)]
    [12.58, 6.76, 4.99]
    """
    forward_s = _even_share_s(sum(workload.forward_flops), topology)
    backward_s = _even_share_s(sum(workload.backward_flops), topology)
    pass_s = (forward_s + backward_s) * topology.num_domains / num_stages
    num_microbatches = workload.num_microbatches
    if num_stages == 1:
        return num_microbatches * pass_s
    transfer_s = workload.message_bytes / mean_bandwidth_bytes_per_s(topology)
    latency_s = _mean(link.latency_s for link in topology.links)
    first_s = num_stages * pass_s + 2 * (num_stages - 1) * (transfer_s + latency_s)
    return (num_microbatches - 1) * max(pass_s, transfer_s) + first_s


def mean_bandwidth_bytes_per_s(topology: Topology) -> float:
    """Mean of the base bandwidths of all links, each direction one. [bytes/s]

    Raises
    ------
    ValueError
        If there are no links.
    """
    if not topology.links:
        raise ValueError("topology: links must hold at least one link for a ratio, got none")
    return _mean(link.bandwidth_bytes_per_s for link in topology.links)


def _even_share_s(flops: float, topology: Topology) -> float:
    """Time that an even share of some FLOPs takes, mean over the domains. [s]"""
    share = flops / topology.num_domains
    return _mean(share / domain.attainable_flops_per_s for domain in topology.domains)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)
