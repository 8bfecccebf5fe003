"""Files of link figures: read strictly, and written for `read_link_figures` to return the same."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from des.base.strict_forms import StrictForm, read_json_form
from des.devices.gpu_kinds import GPU_PORTS
from des.devices.link_figures import DeviceFigures, NetworkConstants, TransferConstants

SHIPPED = Path(__file__).parent / "data" / "link_figures.json"
"""Figures fitted to the measured table that comes with `calibration.measured`."""

_FORMAT, _VERSION = "eastwest-link-figures", 1


class _TransferForm(StrictForm):
    launch_s: float = Field(ge=0)
    floor_s: float = Field(ge=0)
    nvlink_step_s: float = Field(ge=0)
    nvlink_fraction: float = Field(gt=0, le=1)
    pcie_step_s: float = Field(ge=0)
    pcie_fraction: float = Field(gt=0, le=1)


class _NetworkForm(StrictForm):
    gpu_bandwidth_bytes_per_s: float = Field(gt=0)
    server_bandwidth_bytes_per_s: float = Field(gt=0)
    step_s: float = Field(ge=0)


class _FileForm(StrictForm):
    format: Literal["eastwest-link-figures"]
    version: Literal[1]
    algorithm: Literal["ring", "tree", "halving", "hierarchical"]
    least_bytes: float = Field(ge=0)
    source: str
    pooled: _TransferForm
    models: dict[str, _TransferForm]
    networks: dict[str, _NetworkForm]
    fit: dict[str, object] = Field(default_factory=dict)
    """Intervals and errors: for people, not for times."""


def read_link_figures(path: Path) -> DeviceFigures:
    """Read figures that `python -m calibration devices` wrote.

    Raises
    ------
    ValueError
        If the file is not JSON, a field is missing or wrong, or a GPU model is not known; naming
        file, field, what is allowed and what came.
    """
    content = read_json_form(path, _FileForm)
    for name in content.models:
        if name not in GPU_PORTS:
            raise ValueError(
                f"{path}: models: must be some of {', '.join(GPU_PORTS)}; got {name!r}"
            )
    return DeviceFigures(
        pooled=TransferConstants(**dict(content.pooled)),
        models={name: TransferConstants(**dict(one)) for name, one in content.models.items()},
        networks={name: NetworkConstants(**dict(one)) for name, one in content.networks.items()},
        algorithm=content.algorithm,
        least_bytes=content.least_bytes,
        source=content.source,
    )


@cache
def shipped_link_figures() -> DeviceFigures:
    """Figures that come with the project."""
    return read_link_figures(SHIPPED)


def link_figures_json(figures: DeviceFigures, fit: Mapping[str, object]) -> bytes:
    """Write figures as JSON, with what a fit says of them."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "algorithm": figures.algorithm,
        "least_bytes": figures.least_bytes,
        "source": figures.source,
        "pooled": asdict(figures.pooled),
        "models": {name: asdict(own) for name, own in figures.models.items()},
        "networks": {name: asdict(own) for name, own in figures.networks.items()},
        "fit": fit,
    }
    return (json.dumps(content, indent=1) + "\n").encode()
