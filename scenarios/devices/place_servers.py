"""Placement of a job on several servers: from a list of them, or nodes of a cluster alike."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from pydantic import Field

from agents.devices.free_gpus import FreeGpus
from agents.devices.server_choice import ServerPool
from agents.devices.training_figures import TrainingAssumptions
from agents.devices.training_placement import JobKind, TrainingPlacement, optimise_placement
from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.quantities import BANDWIDTH_BYTES_PER_S, SIZE_BYTES, TIME_S, Units, parse_quantity
from des.base.strict_forms import StrictForm, form_errors
from des.base.text_files import read_yaml
from des.devices.cluster import Cluster, ClusterNode, Switch
from des.devices.cluster_files.hostlist import expand_hosts
from des.devices.cluster_files.slurm_conf import LINK_SPEED
from des.devices.cluster_files.table import read_cluster
from des.plan.parallelism import Parallelism
from scenarios.devices.placement_flags import (
    JobFlags,
    aligned,
    comma_separated,
    milliseconds,
    modelled,
    placed_server_of,
    tell,
)
from scenarios.devices.sources import ServerFlags, server_of

_EndT = TypeVar("_EndT", ClusterNode, Switch)


class ServerForm(StrictForm):
    """One server: a file or a kind, the free GPUs (default: all), and where it is."""

    name: str
    file: str | None = None
    simulate: str | None = None
    free: list[int] | None = None
    levels: dict[str, str] = Field(default_factory=dict)


class _ServersForm(StrictForm):
    servers: list[ServerForm]


def run(flags: JobFlags, mix: Mapping[int, float]) -> int:
    """Place the job and print servers, GPUs and predicted times."""
    assumed = TrainingAssumptions(
        model=flags.model,
        gpu=flags.gpu,
        parallelism=None if flags.parallelism is None else Parallelism.parse(flags.parallelism),
        cards_per_server=flags.cards_per_server,
        card_bandwidth_bytes_per_s=flags.card_bandwidth_bytes_per_s,
    )
    pool = _linked(_speeded(_pool(flags), flags.link_speed), flags.links)
    try:
        found = optimise_placement(
            pool,
            flags.gpus,
            flags.gpus_per_node,
            kind=cast(JobKind, flags.kind),
            data_locality=flags.data_locality,
            data_bytes=_quantity("--data-size", flags.data_size, SIZE_BYTES),
            mix=mix,
            assumed=assumed,
        )
    except ValueError as error:
        raise UsageError(_with_flags(str(error))) from error
    tell(found if flags.json else _text(found, assumed))
    return 0


def _with_flags(message: str) -> str:
    """Message in which figures that must be given are flags."""
    flag = re.compile(r"([a-z_]+) must be given")
    return flag.sub(lambda found: f"--{found[1].replace('_', '-')} must be given", message)


def _quantity(flag: str, text: str | None, units: Units) -> float | None:
    with prefixed_errors(f"{flag} ", UsageError):
        return None if text is None else parse_quantity(text, units)


def _speeded(pool: ServerPool, unit: str | None) -> ServerPool:
    """The pool whose links below a switch of Slurm have its LinkSpeed, in a unit."""
    one_bytes_per_s = _quantity("--link-speed", unit, BANDWIDTH_BYTES_PER_S)
    if one_bytes_per_s is None:
        return pool
    speeds: dict[str | None, float] = {}
    for switch in pool.cluster.switches:
        text = dict(switch.labels).get(LINK_SPEED, "")
        if not re.fullmatch(r"[0-9]{0,9}[1-9][0-9]{0,9}", text):
            raise UsageError(
                f"--link-speed: {LINK_SPEED} of switch {switch.name} must be a whole number above "
                f"0, got {text!r}"
            )
        speeds[switch.name] = int(text) * one_bytes_per_s
    nodes, switches = pool.cluster.nodes, pool.cluster.switches
    priced = replace(
        pool.cluster,
        nodes=tuple(replace(n, uplink_bytes_per_s=speeds.get(n.switch)) for n in nodes),
        switches=tuple(replace(s, uplink_bytes_per_s=speeds.get(s.parent)) for s in switches),
    )
    return replace(pool, cluster=priced)


def _linked(pool: ServerPool, texts: Sequence[str]) -> ServerPool:
    """The pool on links of the given bandwidths and latencies, by the level of their lower end."""
    links = dict(map(_link, texts))
    cluster = pool.cluster
    known = ("node", *(level.name for level in cluster.levels))
    if unknown := sorted(set(links) - set(known)):
        raise UsageError(f"--links: must be of {', '.join(known)}; got {unknown[0]!r}")

    def priced(one: _EndT, level: str) -> _EndT:
        width, latency_s = links.get(level, (None, 0.0))
        known = width or one.uplink_bytes_per_s
        return replace(one, uplink_bytes_per_s=known, uplink_latency_s=latency_s)

    if not links:
        return pool
    nodes = tuple(priced(node, "node") for node in cluster.nodes)
    switches = tuple(priced(switch, switch.level) for switch in cluster.switches)
    return replace(pool, cluster=replace(cluster, nodes=nodes, switches=switches))


def _link(text: str) -> tuple[str, tuple[float, float]]:
    level, _, figures = text.partition("=")
    bandwidth, _, latency = figures.partition("/")
    with prefixed_errors(f"--links {text}: ", UsageError):
        bandwidth_bytes_per_s = parse_quantity(bandwidth, BANDWIDTH_BYTES_PER_S)
        return level, (bandwidth_bytes_per_s, parse_quantity(latency, TIME_S) if latency else 0.0)


def _pool(flags: JobFlags) -> ServerPool:
    if flags.servers_file is not None:
        return read_servers(flags.servers_file, flags.gpu)
    assert flags.cluster is not None
    cluster, server = read_cluster(flags.cluster), placed_server_of(flags)
    taken = set(expand_hosts(flags.taken)) if flags.taken is not None else set()
    if taken - set(cluster.node_named):
        unknown = min(taken - set(cluster.node_named))
        raise ValueError(f"--taken: must be nodes of the cluster, got {unknown!r}")
    everything = tuple(gpu.number for gpu in server.gpus)
    for node in cluster.nodes:
        if node.num_gpus not in (None, server.num_gpus):
            raise ValueError(
                f"{flags.cluster}: node {node.name}: num_gpus must be {server.num_gpus}, those of "
                f"{server.name}, got {node.num_gpus}"
            )
    servers = (
        FreeGpus(name=node.name, server=server, numbers=() if node.name in taken else everything)
        for node in cluster.nodes
    )
    return ServerPool(cluster=cluster, servers=tuple(servers))


def read_servers(path: Path, gpu: str | None = None) -> ServerPool:
    """Read servers, their free GPUs and the units that they are in; files are next to the list.

    ``gpu`` is the model of GPUs of which a server does not say it.

    Raises
    ------
    ValueError
        If the file, or that of a server, is wrong.
    """
    content = read_yaml(path)
    with form_errors(str(path)):
        forms = _ServersForm.model_validate(content).servers
        if not forms:
            raise ValueError("servers must be at least one, got none")
        return ServerPool(
            cluster=cluster_of_forms(forms),
            servers=tuple(_free_gpus(path, form, gpu) for form in forms),
        )


def cluster_of_forms(forms: Sequence[ServerForm]) -> Cluster:
    """Cluster of the units that servers name, coarse to fine."""
    switches: dict[str, Switch] = {}
    for form in forms:
        parent = None
        for level, name in form.levels.items():
            unit = Switch(name=name, level=level, parent=parent)
            if switches.setdefault(name, unit) != unit:
                raise ValueError(
                    f"server {form.name}: {level} {name} must be below the same unit everywhere, "
                    f"got {switches[name].parent} and {parent}"
                )
            parent = name
    nodes = (
        ClusterNode(name=form.name, switch=[*form.levels.values()][-1] if form.levels else None)
        for form in forms
    )
    return Cluster(nodes=tuple(nodes), switches=tuple(switches.values()))


def _free_gpus(path: Path, form: ServerForm, gpu: str | None) -> FreeGpus:
    if (form.file is None) == (form.simulate is None):
        raise ValueError(f"server {form.name}: one of file and simulate must be given")
    files = () if form.file is None else (path.parent / form.file,)
    server = modelled(server_of(ServerFlags(file=files, simulate=form.simulate)), gpu)
    numbers = [gpu.number for gpu in server.gpus] if form.free is None else form.free
    return FreeGpus(name=form.name, server=server, numbers=tuple(numbers))


def _text(found: TrainingPlacement, assumed: TrainingAssumptions) -> str:
    rows = [("server", "GPUs"), *zip(found.servers, map(comma_separated, found.gpus), strict=True)]
    fits = "" if found.fits_memory else " (does not fit into memory)"
    figures = [
        (found.level, found.unit),
        ("quality", f"{found.quality:.3f} ({found.closeness})"),
        ("all-reduce of 100 MB [ms]", milliseconds(found.all_reduce_s)),
        (f"iteration of {assumed.model} [s]", f"{found.iteration_s:.3f}{fits}"),
        ("fragmentation afterwards", f"{found.fragmentation_fraction:.3f}"),
    ]
    if found.warm_up_s is not None:
        figures.append(("cache warm-up [s]", f"{found.warm_up_s:.3f}"))
    return f"{found.why}\n{aligned(rows)}\n{aligned(figures)}"
