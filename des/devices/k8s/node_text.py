"""Description of a server on its Kubernetes node: labels, and an annotation with all of it."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pydantic import Field

from des.base.strict_forms import StrictForm, form_errors
from des.base.strict_json import parse_json
from des.devices.gpu_kinds import GPU_PORTS
from des.devices.server import Gpu, Nic, Server

LABELS = (
    *("gpu-count", "gpu-model", "gpu-nvlink-groups", "gpu-numa-nodes", "interconnect", "nvlinks"),
    *("nvlink-bandwidth", "gpus-per-numa", "single-numa-4gpu", "single-numa-8gpu"),
)
"""Names of the labels below the prefix of annotations."""

_FORMAT = 1
_GPU_FIELDS = ("model", "pci_address", "pcie_root", "numa_nodes", "nvlink_bytes_per_s")
_NIC_FIELDS = ("name", "device", "numa_node")
"""Fields of devices that are written as they are, if they are known."""


class _GpuForm(StrictForm):
    index: int = Field(ge=0)
    model: str | None = None
    pci_address: str | None = None
    pcie_root: str | None = None
    numa_nodes: list[int] = Field(default_factory=list)
    nvlink_bytes_per_s: float | None = Field(default=None, gt=0)


class _NicForm(StrictForm):
    name: str
    device: str | None = None
    numa_node: int | None = None


class _ServerForm(StrictForm):
    format: int = Field(ge=_FORMAT, le=_FORMAT)
    gpus: list[_GpuForm]
    nics: list[_NicForm] = Field(default_factory=list)
    matrix: list[str]
    nvlinks: list[list[int]] = Field(default_factory=list)


def server_annotation(server: Server) -> str:
    """Text of a server in one line of JSON: GPUs, PCI addresses, cards, tokens, NVLinks.

    Each row of ``matrix`` has the tokens of a device, with blanks; ``nvlinks`` are two GPUs and
    the count between them.
    """
    count = range(server.num_gpus)
    content: dict[str, Any] = {
        "format": _FORMAT,
        "gpus": [{"index": gpu.number, **_known(gpu, _GPU_FIELDS)} for gpu in server.gpus],
        "nics": [_known(nic, _NIC_FIELDS) for nic in server.nics],
        "matrix": [" ".join(row) for row in server.tokens],
        "nvlinks": [
            [server.gpus[one].number, server.gpus[other].number, server.nvlinks[one][other]]
            for one in count
            for other in count[one + 1 :]
            if server.nvlinks[one][other]
        ],
    }
    return json.dumps(content, separators=(",", ":"))


def _known(device: object, fields: Iterable[str]) -> dict[str, Any]:
    """Fields of a device that are known."""
    values = {field: getattr(device, field) for field in fields}
    return {field: value for field, value in values.items() if value not in (None, ())}


def read_server_annotation(text: str, name: str) -> Server:
    """Server of an annotation, under a name.

    Raises
    ------
    ValueError
        If the text is not what `server_annotation` writes, or contradicts itself.
    """
    with form_errors(f"annotation of {name}"):
        form = _ServerForm.model_validate(parse_json(text))
    return Server(
        name=name,
        gpus=tuple(
            Gpu(
                number=gpu.index,
                **gpu.model_dump(exclude={"index"}) | {"numa_nodes": tuple(gpu.numa_nodes)},
            )
            for gpu in form.gpus
        ),
        nics=tuple(Nic(**nic.model_dump()) for nic in form.nics),
        tokens=tuple(tuple(row.split()) for row in form.matrix),
    )


def server_labels(server: Server, prefix: str) -> dict[str, str]:
    """Labels of a node, which selectors of pods can name.

    Examples
    --------
    >>> server_labels(Server(name="s", gpus=(Gpu(number=0),), tokens=(("X",),)), "example.com")
    {'example.com/gpu-count': '1', 'example.com/gpu-nvlink-groups': '0', \
'example.com/interconnect': 'pcie'}
    """
    models = {gpu.model for gpu in server.gpus}
    groups = [group for group in server.nvlink_components if len(group) > 1]
    of_node = Counter(node for gpu in server.gpus for node in gpu.numa_nodes)
    each, most = set(of_node.values()), max(of_node.values(), default=0)
    values = (
        str(server.num_gpus),
        models.pop() if len(models) == 1 else "mixed",
        str(len(groups)),
        str(len(of_node)) if of_node else None,
        _interconnect(server, groups),
        *_nvlink_values(server),
        None if not of_node else str(most) if len(each) == 1 else "mixed",
        *(str(most >= count).lower() if of_node else None for count in (4, 8)),
    )
    return {
        f"{prefix}/{name}": value
        for name, value in zip(LABELS, values, strict=True)
        if value is not None
    }


def _interconnect(server: Server, groups: Sequence[Collection[int]]) -> str:
    """Wires between GPUs: NVLinks among all of them, among some, or PCIe alone."""
    if not groups:
        return "pcie"
    return "nvlink" if len(groups[0]) == server.num_gpus else "nvlink-groups"


def _nvlink_values(server: Server) -> tuple[str | None, str | None]:
    """NVLinks of the two GPUs that most of them join, and their bandwidth each way, if known."""
    count, place = max((max(row), place) for place, row in enumerate(server.nvlinks))
    gpu = server.gpus[place]
    ports = GPU_PORTS.get(gpu.model or "")
    rate = gpu.nvlink_bytes_per_s or (None if ports is None else ports.nvlink_bytes_per_s)
    if not count:
        return None, None
    return str(count), None if not rate else f"{count * rate / 1e9:g}GBps"


def node_patch(server: Server, prefix: str) -> dict[str, Any]:
    """Merge patch of a node: labels and annotation of its server; null for labels not known."""
    labels = dict.fromkeys((f"{prefix}/{name}" for name in LABELS), None)
    return {
        "metadata": {
            "labels": labels | server_labels(server, prefix),
            "annotations": {f"{prefix}/topology": server_annotation(server)},
        }
    }
