"""Reader of ``nvidia-smi -L`` and ``nvidia-smi nvlink --status``: models and NVLinks of GPUs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from des.devices.server import Gpu, Server

_GPU = re.compile(
    r"\s*GPU (\d+(?:,\d+)*):\s*((?:NVIDIA|Tesla|GeForce|Quadro|GRID)\b.*?|.*?(?=\s*\(UUID:))"
    r"\s*(\(UUID:.*)?"
)
_MIG = re.compile(r"\s*MIG (\S+)\s+Device\s+\d+:.*")
_LINK = re.compile(r"\s*Link (\d+): (?:([\d.]+) GB/s|<?\s*inactive\s*>?)\s*", re.IGNORECASE)
_MODELS = (
    *("gb300", "gb200", "gh200", "b300", "b200", "b100", "h200", "h800", "h100", "h20"),
    *("a100", "a800", "a40", "a30", "a10", "v100", "p100", "l40s", "l40", "l4", "t4"),
)
"""Models that a word of the product's name begins with, as ``A100-SXM4-80GB``."""

_FORMS = {"a100": ("pcie",), "h100": ("pcie", "nvl")}
"""Forms of a model whose ports differ."""

_CARDS = re.compile(
    r"\b(RTX|GTX)\s*(?:PRO\s*)?(A?\d{3,4})(?:\s*(Ti|SUPER|Ada|D))?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGpu:
    """A GPU of a list.

    Attributes
    ----------
    number, product
        As the driver counts and names it.
    links
        Line rates of its NVLinks, each way [bytes/s], None for those that are inactive; empty if
        the list has none.
    mig_devices
        Profiles of its MIG devices.
    """

    number: int
    product: str
    links: tuple[float | None, ...] = ()
    mig_devices: tuple[str, ...] = ()

    @property
    def model(self) -> str | None:
        """Name of the model as presets have it, such as ``a100``; None if not known."""
        return model_of(self.product)


def model_of(product: str) -> str | None:
    """Return the model that a product's name contains, in small letters; None if not known.

    Examples
    --------
    >>> model_of("NVIDIA A100-SXM4-80GB"), model_of("NVIDIA A100 80GB PCIe")
    ('a100', 'a100_pcie')
    >>> model_of("NVIDIA GeForce RTX 4090"), model_of("NVIDIA RTX 6000 Ada Generation")
    ('rtx4090', 'rtx6000ada')
    """
    words = re.split(r"[\s_-]+", product.lower())
    for model in _MODELS:
        if model in words:
            form = next((form for form in _FORMS.get(model, ()) if form in words), None)
            return f"{model}_{form}" if form else model
    found = _CARDS.search(product)
    return "".join(part.lower() for part in found.groups() if part) if found else None


def read_gpu_list(lines: Sequence[str]) -> tuple[ListedGpu, ...]:
    """Read the GPUs that some lines list; none if there are none.

    Raises
    ------
    ValueError
        If two lines give a GPU different names, or links are not numbered from 0; names the line.
    """
    listed: dict[int, ListedGpu] = {}
    current: int | None = None
    for number, line in enumerate(lines, start=1):
        if found := _GPU.fullmatch(line):
            gpus = [int(text) for text in found[1].split(",")]
            current = gpus[0] if len(gpus) == 1 else None
            for gpu in gpus:
                new = ListedGpu(number=gpu, product=found[2])
                if listed.setdefault(gpu, new).product != new.product:
                    raise ValueError(
                        f"line {number}: GPU {gpu} is {new.product!r} here, before "
                        f"{listed[gpu].product!r}"
                    )
        elif (found := _MIG.fullmatch(line)) and current is not None:
            gpu_listed = listed[current]
            parts = (*gpu_listed.mig_devices, found[1])
            listed[current] = replace(gpu_listed, mig_devices=parts)
        elif (found := _LINK.fullmatch(line)) and current is not None:
            gpu_listed = listed[current]
            if int(found[1]) != len(gpu_listed.links):
                raise ValueError(
                    f"line {number}: links of GPU {current} must be numbered from 0, once each: "
                    f"expected {len(gpu_listed.links)}, got {found[1]}"
                )
            rate = float(found[2]) * 1e9 if found[2] else None
            listed[current] = replace(gpu_listed, links=(*gpu_listed.links, rate))
    return tuple(listed.values())


def with_gpu_list(server: Server, listed: Sequence[ListedGpu]) -> Server:
    """Return the server with models and NVLink rates of its GPUs from a list.

    Raises
    ------
    ValueError
        If a GPU of the list is not in the server, or its active NVLinks cannot be those of the
        matrix.
    """
    of_number = {gpu.number: gpu for gpu in listed}
    extra = sorted(set(of_number) - {gpu.number for gpu in server.gpus})
    if extra:
        raise ValueError(
            f"{server.name}: the list has GPUs {', '.join(map(str, extra))}, the matrix has "
            f"{', '.join(str(gpu.number) for gpu in server.gpus)}"
        )
    gpus = []
    for gpu, counts in zip(server.gpus, server.nvlinks, strict=True):
        one = of_number.get(gpu.number)
        gpus.append(_joined(server.name, gpu, one, counts) if one else gpu)
    return replace(server, gpus=tuple(gpus))


def _joined(owner: str, gpu: Gpu, listed: ListedGpu, counts: Sequence[int]) -> Gpu:
    """Add model and rate to a GPU; links at a switch count once for each other GPU."""
    active = [rate for rate in listed.links if rate is not None]
    most, together = max(counts), sum(counts)
    if listed.links and len(active) != most and (len(active) < together or not most):
        hint = "; is it that of topo -mp, which leaves them out?" if not most else ""
        raise ValueError(
            f"{owner}: {gpu.name} has {len(active)} active NVLinks, which does not fit its row of "
            f"the matrix, {' '.join(map(str, counts))}{hint}"
        )
    rates = sorted(set(active))
    if len(rates) > 1:
        raise ValueError(
            f"{owner}: NVLinks of {gpu.name} must have one line rate, got "
            f"{', '.join(f'{rate / 1e9:g}' for rate in rates)} GB/s"
        )
    return replace(
        gpu,
        model=listed.model or gpu.model,
        mig_devices=listed.mig_devices or gpu.mig_devices,
        nvlink_bytes_per_s=rates[0] if rates else gpu.nvlink_bytes_per_s,
    )
