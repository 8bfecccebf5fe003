"""The JSON form of a topology: matrices of bandwidth and latency."""

from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from des.base.checks import prefixed_errors
from des.base.quantities import BANDWIDTH_BYTES_PER_S, TIME_S, require_in_reach, scale_number
from des.base.strict_forms import StrictForm, form_errors
from des.base.strict_json import parse_json
from des.world.domain import Domain
from des.world.files.dynamics_forms import read_law
from des.world.files.quantity_fields import Price
from des.world.files.topology_forms import GpuForm, TransportForm
from des.world.topology import Link, Topology, require_few_domains

_PositiveNumber = Annotated[float, Field(gt=0)]
_Number = Annotated[float, Field(ge=0)]


class _JsonForm(StrictForm):
    """Matrices in Gbit/s and ms: row = source, column = target, diagonal = inside the domain.

    ``null`` in both matrices means that there is no direct link. Prices are in USD per GB, where
    ``null`` means not known; inside a domain nothing is priced. GPU keys hold one value for all
    domains, or a list of one per domain.
    """

    topology: Literal["hierarchical"]
    num_domains: Annotated[int, Field(ge=1)]
    bandwidth_matrix: list[list[_PositiveNumber | None]]
    latency_matrix: list[list[_Number | None]]
    price_usd_per_gb_matrix: list[list[Price | None]] | None = None
    names: list[str] | None = None
    num_gpus: int | list[int] | None = None
    gpu: str | list[str] | None = None
    gpu_peak: str | list[str] | None = None
    gpu_memory: str | list[str] | None = None
    gpu_memory_bandwidth: str | list[str] | None = None
    layer_times: str | list[str] | None = None
    kernels: dict[str, object] | list[dict[str, object] | None] | None = None
    profile: str | list[str | None] | None = None
    profile_gpu: str | list[str | None] | None = None
    extrapolate: bool | list[bool] | None = None
    attainable_fraction: float | list[float | None] | None = None
    gpu_price_usd_per_hour: Price | list[Price | None] | None = None
    nodes: dict[str, object] | list[dict[str, object] | None] | None = None
    site: str | list[str | None] | None = None
    uplink: str | list[str | None] | None = None
    downlink: str | list[str | None] | None = None
    flow_cap: str | list[str | None] | None = None
    host_cap: str | list[str | None] | None = None
    dynamics: object = Field(default_factory=dict)
    transport: TransportForm = TransportForm()

    def check_shape(self) -> None:
        """Refuse matrices that are not square, lists of another length and names given twice."""
        size = self.num_domains
        for field in ("bandwidth_matrix", "latency_matrix", "price_usd_per_gb_matrix"):
            matrix = getattr(self, field)
            if matrix is None:
                continue
            lengths = sorted({len(row) for row in matrix})
            if len(matrix) != size or lengths != [size]:
                raise ValueError(
                    f"{field}: must be square, {size} x {size} as num_domains says; got "
                    f"{len(matrix)} rows of length {', '.join(map(str, lengths)) or 'none'}"
                )
        for field in ("names", *GpuForm.model_fields):
            value = getattr(self, field)
            if isinstance(value, list) and len(value) != size:
                raise ValueError(f"{field}: must hold {size} entries, got {len(value)}")
        if self.names is not None and len(set(self.names)) < size:
            raise ValueError(f"names: must be unique, got {', '.join(self.names)}")

    def domains(self, folder: Path) -> list[Domain]:
        """Make the domains from the diagonals and the GPU keys; profiles lie in the folder."""
        names = self.names or [f"domain{index}" for index in range(self.num_domains)]
        domains = []
        for index, name in enumerate(names):
            values = {field: getattr(self, field) for field in GpuForm.model_fields}
            one = {
                field: value[index] if isinstance(value, list) else value
                for field, value in values.items()
                if value is not None
            }
            with form_errors(f"domain {name}"):
                gpus = GpuForm.model_validate(one)
            figures = self.figures(index, index)
            if figures is None:
                raise ValueError(
                    f"bandwidth_matrix[{index}][{index}]: must be the bandwidth inside "
                    f"{name}, got null"
                )
            domains.append(gpus.to_domain(name, *figures, folder))
        return domains

    def figures(self, row: int, column: int) -> tuple[float, float] | None:
        """Bytes per second and seconds of one entry of the matrices, None where there is none."""
        bandwidth, latency = self.bandwidth_matrix[row][column], self.latency_matrix[row][column]
        if (bandwidth is None) != (latency is None):
            raise ValueError(
                f"[{row}][{column}]: bandwidth_matrix and latency_matrix must both hold a number "
                f"or both null, got {bandwidth!r} and {latency!r}"
            )
        if bandwidth is None or latency is None:
            return None
        with prefixed_errors(f"bandwidth or latency of [{row}][{column}]: "):
            return (
                require_in_reach(scale_number(bandwidth, "Gbps", BANDWIDTH_BYTES_PER_S), bandwidth),
                require_in_reach(scale_number(latency, "ms", TIME_S), latency),
            )

    def price(self, row: int, column: int) -> float | None:
        """USD per GB of one entry, None where none is given; refused where there is no link."""
        if self.price_usd_per_gb_matrix is None:
            return None
        price = self.price_usd_per_gb_matrix[row][column]
        if price is not None and (row == column or self.figures(row, column) is None):
            raise ValueError(
                f"price_usd_per_gb_matrix[{row}][{column}]: must be null, as there is no link "
                f"to price; got {price!r}"
            )
        return price


def from_json(text: str, folder: Path = Path()) -> Topology:
    """Read the content of a JSON file; ``ValueError`` where it does not describe a world.

    Names of further files in it are relative to the folder.
    """
    content = parse_json(text)
    count = content.get("num_domains") if isinstance(content, dict) else None
    if isinstance(count, int):
        require_few_domains("num_domains", count)
    form = _JsonForm.model_validate(content)
    form.check_shape()
    domains = form.domains(folder)
    links = []
    for row, column in product(range(form.num_domains), repeat=2):
        price = form.price(row, column)
        figures = None if row == column else form.figures(row, column)
        if figures is not None:
            links.append(
                Link(
                    source=domains[row].name,
                    target=domains[column].name,
                    bandwidth_bytes_per_s=figures[0],
                    latency_s=figures[1],
                    price_usd_per_gb=price,
                )
            )
    law = read_law(form.dynamics, folder)
    return Topology.of(domains, links, law, form.transport.to_transport())
