"""Hosts in the order of the ranks of a trainer: which site is which stage.

Hosts of the sites of a plan: from a file of the user, or placeholders.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from agents.decision.bound_plan import BoundPlan
from agents.trainers.plan_checks import MOST_ASSUMED_TENSOR, domains_in_use
from agents.trainers.trainer import HostOrder
from des.base.text_files import read_text, read_yaml
from des.plan.placement import Stage
from scenarios.iteration.launch_folder import HOST_NAME, LaunchHost

_Given = tuple[list[str], int | None]
"""Hosts of a site as a file has them, and GPUs of each where it says them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteHosts:
    """Hosts of a site, in the order of the servers of a plan, and GPUs of each."""

    names: tuple[str, ...]
    num_gpus: int


def hosts_of_sites(bound: BoundPlan, path: Path | None) -> dict[int, SiteHosts]:
    """Return the hosts of each domain in use: those of a file, or placeholders ``<site>-<n>``.

    Raises
    ------
    ValueError
        If a name is none of a host, hosts are too few, or come twice; naming the file.
    """
    given = {} if path is None else _read(path)
    source = "hosts" if path is None else f"--hosts {path}"
    domains = {index: bound.topology.domains[index] for index in domains_in_use(bound.plan)}
    for site in given:
        if site not in bound.topology.index_of:
            known = ", ".join(bound.topology.index_of)
            raise ValueError(f"{source}: sites must be some of {known}; got {site!r}")
    found = {
        index: _hosts(bound, index, given.get(domain.name), path)
        for index, domain in domains.items()
    }
    seen: set[str] = set()
    for own in found.values():
        for name in own.names:
            if re.fullmatch(HOST_NAME, name) is None:
                raise ValueError(
                    f"{source}: names of hosts must be of letters, digits, points and hyphens; "
                    f"got {name!r}"
                    + ("" if path else ", for want of --hosts, which names the hosts of each site")
                )
            if name in seen:
                raise ValueError(f"{source}: each host must be given once, got {name} twice")
            seen.add(name)
    return found


def _hosts(bound: BoundPlan, index: int, given: _Given | None, path: Path | None) -> SiteHosts:
    """Hosts of one domain, as many as its plan needs."""
    source, domain = f"--hosts {path}", bound.topology.domains[index]
    names, num_gpus = given or ([], None)
    known = None if domain.nodes is None else domain.nodes.gpus_per_node
    own = bound.plan.parallelism[index]
    size = known or num_gpus or min(MOST_ASSUMED_TENSOR, domain.num_gpus)
    if num_gpus not in (None, size):
        raise ValueError(
            f"{source}: hosts of {domain.name} must have the {size} GPUs of its servers; "
            f"got {num_gpus}"
        )
    needed = -(-own.pipeline * own.gpus_per_device // size)
    order = domain.node_order if domain.has_priced_racks else range(needed)
    if path is not None and len(names) < len(order):
        whose = "the servers of the plan" if len(order) == needed else "all servers, rack by rack"
        raise ValueError(
            f"{source}: {domain.name} must have at least {len(order)} hosts, for {whose}; "
            f"got {len(names)}"
        )
    names = names or [f"{domain.name}-{number}" for number in range(len(order))]
    return SiteHosts(names=tuple(names[at] for at in order[:needed]), num_gpus=size)


def _read(path: Path) -> dict[str, _Given]:
    """Names of the hosts of each site, and their GPUs where they are given."""
    if path.suffix in (".yaml", ".yml"):
        content = read_yaml(path)
        if not isinstance(content, Mapping):
            raise ValueError(f"{path}: must be a mapping of sites to hosts, got {content!r}")
        return {str(site): _of_value(path, str(site), own) for site, own in content.items()}
    found: dict[str, _Given] = {}
    for number, line in enumerate(read_text(path, "hosts ").splitlines(), start=1):
        words = line.partition("#")[0].split()
        match = re.fullmatch(r"(\S+) (\S+)(?: ([1-9][0-9]{0,5}))?", " ".join(words))
        if match is None and words:
            raise ValueError(
                f"{path}, line {number}: must be a site, a host and, if need be, its GPUs, with "
                f"spaces between and none in names; got {line.strip()!r}"
            )
        if match is not None:
            size = int(match[3]) if match[3] else None
            names, known = found.setdefault(match[1], ([], size))
            if size not in (None, known):
                raise ValueError(
                    f"{path}, line {number}: hosts of {match[1]} must have equally many GPUs, got "
                    f"{size} and {known}"
                )
            names.append(match[2])
    return found


def _of_value(path: Path, site: str, own: object) -> _Given:
    """Hosts of a site in YAML: a list, or a mapping with ``hosts`` and ``gpus``."""
    names, num_gpus = own, None
    if isinstance(own, Mapping) and set(own) <= {"hosts", "gpus"}:
        names, num_gpus = own.get("hosts"), own.get("gpus")
    is_count = num_gpus is None or (type(num_gpus) is int and num_gpus > 0)
    if not is_count or not isinstance(names, list) or not all(isinstance(x, str) for x in names):
        raise ValueError(
            f"{path}: {site} must be a list of hosts, or have hosts, a list, and gpus, a count; "
            f"got {own!r}"
        )
    return names, num_gpus


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
