"""Description of a server on its Kubernetes node: labels, and an annotation with all of it."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from des.base.strict_forms import StrictForm, first_error
from des.base.strict_json import parse_json
from des.devices.server import Gpu, Nic, Server

LABELS = ("gpu-count", "gpu-model", "gpu-nvlink-groups", "gpu-numa-nodes")
"""Names of the labels below the prefix of annotations."""

_FORMAT = 1


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
        "gpus": [_gpu_content(gpu) for gpu in server.gpus],
        "nics": [
            _known({"name": nic.name, "device": nic.device, "numa_node": nic.numa_node})
            for nic in server.nics
        ],
        "matrix": [" ".join(row) for row in server.tokens],
        "nvlinks": [
            [server.gpus[one].number, server.gpus[other].number, server.nvlinks[one][other]]
            for one in count
            for other in count[one + 1 :]
            if server.nvlinks[one][other]
        ],
    }
    return json.dumps(content, separators=(",", ":"))


def _gpu_content(gpu: Gpu) -> dict[str, Any]:
    return _known(
        {
            "index": gpu.number,
            "model": gpu.model,
            "pci_address": gpu.pci_address,
            "pcie_root": gpu.pcie_root,
            "numa_nodes": list(gpu.numa_nodes) or None,
            "nvlink_bytes_per_s": gpu.nvlink_bytes_per_s,
        }
    )


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def read_server_annotation(text: str, name: str) -> Server:
    """Server of an annotation, under a name.

    Raises
    ------
    ValueError
        If the text is not what `server_annotation` writes, or contradicts itself.
    """
    try:
        form = _ServerForm.model_validate(parse_json(text))
    except ValidationError as error:
        raise ValueError(f"annotation of {name}: {first_error(error)}") from error
    except ValueError as error:
        raise ValueError(f"annotation of {name}: {error}") from error
    server = Server(
        name=name,
        gpus=tuple(
            Gpu(
                number=gpu.index,
                model=gpu.model,
                pci_address=gpu.pci_address,
                pcie_root=gpu.pcie_root,
                numa_nodes=tuple(gpu.numa_nodes),
                nvlink_bytes_per_s=gpu.nvlink_bytes_per_s,
            )
            for gpu in form.gpus
        ),
        nics=tuple(
            Nic(name=nic.name, device=nic.device, numa_node=nic.numa_node) for nic in form.nics
        ),
        tokens=tuple(tuple(row.split()) for row in form.matrix),
    )
    return server


def server_labels(server: Server, prefix: str) -> dict[str, str]:
    """Labels of a node, which selectors of pods can name.

    Examples
    --------
    >>> server_labels(Server(name="s", gpus=(Gpu(number=0),), tokens=(("X",),)), "example.com")
    {'example.com/gpu-count': '1', 'example.com/gpu-nvlink-groups': '0'}
    """
    models = {gpu.model for gpu in server.gpus}
    groups = [group for group in server.nvlink_components if len(group) > 1]
    nodes = {node for gpu in server.gpus for node in gpu.numa_nodes}
    values = (
        str(server.num_gpus),
        models.pop() if len(models) == 1 else "mixed",
        str(len(groups)),
        str(len(nodes)) if nodes else None,
    )
    return {
        f"{prefix}/{name}": value
        for name, value in zip(LABELS, values, strict=True)
        if value is not None
    }


def node_patch(server: Server, prefix: str) -> dict[str, Any]:
    """Merge patch of a node: labels and annotation of its server; null for labels not known."""
    labels = dict.fromkeys((f"{prefix}/{name}" for name in LABELS), None)
    return {
        "metadata": {
            "labels": labels | server_labels(server, prefix),
            "annotations": {f"{prefix}/topology": server_annotation(server)},
        }
    }
