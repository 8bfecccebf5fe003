"""Collectives over the copies of a device's weights: all of them, and those of the same experts."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from des.costs.node_collectives import RankGroup
from des.costs.node_groups import data_group, expert_data_group
from des.job.layer_sizes import expert_parameters
from des.job.workload import Workload
from des.plan.buckets import parameters_of
from des.plan.parallelism import Parallelism
from des.world.domain import Domain

Collective = Callable[[float, RankGroup], float]
"""Time of a collective over a payload in bytes and a group. [s]"""


class HeldParameters(NamedTuple):
    """Parameters of layers: those that every copy has, and those of experts, which copies share."""

    common: float
    experts: float = 0.0


def held_parameters(
    workload: Workload, first_layer: int, num_layers: int, parallelism: Parallelism | None
) -> HeldParameters:
    """Parameters of layers in a row, apart where copies share the experts."""
    everything = parameters_of(workload, first_layer, num_layers)
    if parallelism is None or parallelism.expert == 1:
        return HeldParameters(everything)
    assert workload.shape is not None  # a plan with experts is checked against its workload
    routed = sum(expert_parameters(workload.shape)[first_layer : first_layer + num_layers])
    return HeldParameters(everything - routed, routed)


def shared_expert_parameters(
    workload: Workload, runs: Iterable[tuple[int, int]], parallelism: Parallelism | None
) -> float:
    """Parameters of experts that the copies of a device share, of layers in runs.

    Parameters
    ----------
    runs
        First layer and number of layers of each stage of the device.
    """
    if parallelism is None or parallelism.expert == 1:
        return 0.0
    return sum(held_parameters(workload, *run, parallelism).experts for run in runs)


def over_copies_s(
    collective_s: Collective,
    held: HeldParameters,
    parameter_bytes: float,
    domain: Domain,
    parallelism: Parallelism,
    *,
    device: int,
) -> float:
    """Time of a collective over what GPUs of a device have copies of, experts after all else. [s]

    Parameters
    ----------
    parameter_bytes
        Payload of a parameter.
    domain
        Domain with corrected figures.
    """
    own_bytes = parameter_bytes * held.common / parallelism.tensor
    found_s = collective_s(own_bytes, data_group(domain, parallelism, device))
    if held.experts:
        own_bytes = parameter_bytes * held.experts / parallelism.expert_parts
        found_s += collective_s(own_bytes, expert_data_group(domain, parallelism, device))
    return found_s
