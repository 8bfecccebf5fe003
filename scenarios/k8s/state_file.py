"""Read the state of a cluster from a file: servers, free GPUs, pods that hold some."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from agents.devices.k8s.book import Grant, NodeGpus
from agents.devices.k8s.cluster_state import ClusterState
from des.base.checks import system_errors
from des.base.strict_forms import StrictForm, form_errors
from des.base.text_files import read_yaml
from des.devices.server import Server
from scenarios.devices.place_servers import ServerForm, cluster_of_forms
from scenarios.devices.placement_flags import modelled
from scenarios.devices.sources import ServerFlags, server_of


class _NodeForm(ServerForm):
    """One node; without file and simulate it has no GPUs; without resource it offers any."""

    resource: str | None = None


class _PodForm(StrictForm):
    """A pod that holds GPUs of a node."""

    uid: str = Field(min_length=1)
    node: str
    gpus: list[int] = Field(default_factory=list)
    namespace: str = ""
    name: str = ""


class _GangForm(StrictForm):
    """Number of pods of a gang whose pods do not say it."""

    name: str = Field(min_length=1)
    namespace: str = ""
    size: int = Field(ge=1)


class _StateForm(StrictForm):
    servers: list[_NodeForm]
    pods: list[_PodForm] = Field(default_factory=list)
    gangs: list[_GangForm] = Field(default_factory=list)


def read_state(
    path: Path,
    gpu: str | None = None,
    servers: dict[tuple[str, ...], Server] | None = None,
) -> ClusterState:
    """Read a state.

    Parameters
    ----------
    gpu
        Model of GPUs of which a server does not say it.
    servers
        Servers of earlier readings by file and time of its change, so that they stay the same
        objects; new ones are added.

    Raises
    ------
    ValueError
        If the file, or that of a server, is wrong, or changed while it was read.
    """
    known: dict[tuple[str, ...], Server] = {} if servers is None else servers
    before = _stamp(path)
    content = read_yaml(path)
    if _stamp(path) != before:
        raise ValueError(f"{path}: changed while it was read")
    with form_errors(str(path)):
        form = _StateForm.model_validate(content)
        nodes = []
        for each in form.servers:
            server = _server(path, each, gpu, known)
            nodes.append(_node(each, server, form.pods))
        return ClusterState(
            nodes=tuple(nodes),
            cluster=cluster_of_forms(form.servers),
            grants=_grants(form.pods),
            gang_sizes={(gang.namespace, gang.name): gang.size for gang in form.gangs},
        )


def _stamp(path: Path) -> tuple[str, ...]:
    """File, size and time of its last change."""
    with system_errors(f"{path}: cannot be read"):
        found = path.stat()
    return str(path), *map(str, (found.st_ino, found.st_size, found.st_mtime_ns))


def _server(
    path: Path, form: _NodeForm, gpu: str | None, known: dict[tuple[str, ...], Server]
) -> Server | None:
    """Server of a node, from earlier readings if its file has not changed; None without GPUs."""
    if form.file is None and form.simulate is None:
        if form.free:
            raise ValueError(f"server {form.name}: one of file and simulate must be given")
        return None
    if form.file is not None and form.simulate is not None:
        raise ValueError(f"server {form.name}: one of file and simulate must be given, got both")
    file = None if form.file is None else path.parent / form.file
    key = ("kind", str(form.simulate)) if file is None else _stamp(file)
    if key not in known:
        flags = ServerFlags(file=() if file is None else (file,), simulate=form.simulate)
        known[key] = replace(modelled(server_of(flags), gpu), name=form.simulate or _stem(file))
    return known[key]


def _stem(file: Path | None) -> str:
    """Name of a file without folder and ending: reasons go to other machines."""
    return "server" if file is None else file.stem


def _node(form: _NodeForm, server: Server | None, pods: Sequence[_PodForm]) -> NodeGpus:
    if server is None:
        return NodeGpus(name=form.name, resource=form.resource)
    numbers = [each.number for each in server.gpus]
    held = {number for pod in pods if pod.node == form.name for number in pod.gpus}
    free = set(numbers if form.free is None else form.free) | held
    unknown = sorted(free - set(numbers))
    if unknown:
        raise ValueError(
            f"server {form.name}: free and gpus must be numbers of its GPUs, "
            f"{', '.join(map(str, numbers))}; got {unknown[0]}"
        )
    return NodeGpus(
        name=form.name,
        server=server,
        resource=form.resource,
        free=tuple(number for number in numbers if number in free),
    )


def _grants(pods: Sequence[_PodForm]) -> tuple[Grant, ...]:
    return tuple(
        Grant(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            node=pod.node,
            gpus=tuple(pod.gpus),
        )
        for pod in pods
    )
