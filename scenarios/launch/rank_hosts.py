"""Hosts in the order of the ranks of a trainer: which site is which stage."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from agents.decision.bound_plan import BoundPlan
from agents.trainers.trainer import HostOrder
from des.plan.placement import Stage
from scenarios.iteration.launch_folder import LaunchHost
from scenarios.launch.site_hosts import SiteHosts

Device = tuple[int, int]
"""A domain and one of its devices."""


def devices_of(stages: Sequence[Stage]) -> tuple[list[Device], bool]:
    """Return the devices of a pipeline, a rank each, and whether stages go there and back.

    Raises
    ------
    ValueError
        If stages go through the devices in any other way than round and round or there and back.
    """
    passed = [(stage.domain, stage.device) for stage in stages]
    devices = list(dict.fromkeys(passed))
    count = len(devices)
    chunks = [passed[first : first + count] for first in range(0, len(passed), count)]
    if all(own == devices for own in chunks):
        return devices, False
    if all(own == devices[:: -1 if number % 2 else 1] for number, own in enumerate(chunks)):
        return devices, True
    raise ValueError(
        "plan: stages must go through the devices round and round, or there and back, as ranks of "
        f"a trainer do; got {passed}"
    )


def rank_hosts(
    bound: BoundPlan,
    replicas: Sequence[Sequence[Stage]],
    order: HostOrder,
    hosts: Mapping[int, SiteHosts],
) -> tuple[LaunchHost, ...]:
    """Return the hosts of a launch of some replicas, in the order of their ranks.

    Raises
    ------
    ValueError
        If ranks of a host are not its GPUs in a row, which no trainer would notice.
    """
    found: list[LaunchHost] = []
    gpus = _gpus(bound, [devices_of(own)[0] for own in replicas], order)
    for (domain, host), run in groupby(gpus, key=lambda one: _host_of(one, hosts)):
        own = [gpu - host * hosts[domain].num_gpus for _, gpu in run]
        name, site = hosts[domain].names[host], bound.topology.domains[domain].name
        if own != list(range(len(own))) or name in (one.name for one in found):
            raise ValueError(
                f"hosts: ranks of {name} must be its GPUs from 0 on, in a row; got GPUs {own} with "
                f"ranks of a {order} in a row, which the trainer would not notice"
            )
        found.append(LaunchHost(rank=len(found), name=name, num_gpus=len(own), site=site))
    return tuple(found)


def _host_of(gpu: tuple[int, int], hosts: Mapping[int, SiteHosts]) -> tuple[int, int]:
    """Domain of a GPU, and number of its host there."""
    return gpu[0], gpu[1] // hosts[gpu[0]].num_gpus


def _gpus(
    bound: BoundPlan, replicas: Sequence[Sequence[Device]], order: HostOrder
) -> Iterator[tuple[int, int]]:
    """Yield the domain of each rank's GPU and its number there."""
    in_order = (
        (device for devices in replicas for device in devices)
        if order == "replica"
        else (device for stage in zip(*replicas, strict=True) for device in stage)
    )
    for domain, device in in_order:
        size = bound.plan.parallelism[domain].gpus_per_device
        for gpu in range(device * size, (device + 1) * size):
            yield domain, gpu
