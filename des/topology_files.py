"""Reading topologies from files: the YAML list of links and the JSON matrices.

Both forms give equal `Topology` values for equal content. Units and formats are known only here.
"""

import json
from collections.abc import Callable, Hashable
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from des.dynamics import Dynamics
from des.quantities import (
    BANDWIDTH_BYTES_PER_S,
    FLOPS_PER_S,
    SIZE_BYTES,
    TIME_S,
    Units,
    parse_quantity,
    scale_number,
)
from des.topology import Domain, Link, Topology


def read_topology(path: str | Path) -> Topology:
    """Read a world from a ``.yaml``, ``.yml`` or ``.json`` file.

    Raises
    ------
    ValueError
        If the file cannot be read or does not describe a world; the message names the file, the
        field, what is allowed and what came.
    """
    path = Path(path)
    readers: dict[str, Callable[[str], Topology]] = {
        ".yaml": _from_yaml,
        ".yml": _from_yaml,
        ".json": _from_json,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path}: topology file must end in {', '.join(readers)}")
    try:
        return reader(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise ValueError(f"{path}: {_first_error(error)}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"{path}: topology file cannot be read: {reason}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _quantity(units: Units, *, zero: bool = False) -> BeforeValidator:
    """Make a validator that turns ``"5Gbps"`` into a float of the base unit."""

    def parse(value: object) -> float:
        number = parse_quantity(value, units)
        if number < 0 or (number == 0 and not zero):
            raise ValueError(f"must be {'at least 0' if zero else 'positive'}; got {value!r}")
        return number

    return BeforeValidator(parse)


_Bandwidth = Annotated[float, _quantity(BANDWIDTH_BYTES_PER_S)]
_Latency = Annotated[float, _quantity(TIME_S, zero=True)]
_Speed = Annotated[float, _quantity(FLOPS_PER_S)]
_Size = Annotated[float, _quantity(SIZE_BYTES)]


def _parse_interval(value: object) -> float | None:
    if value == "per_epoch":
        return None
    try:
        return parse_quantity(value, TIME_S)
    except ValueError as error:
        raise ValueError(f"must be per_epoch or a time such as '5s'; got {value!r}") from error


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _DynamicsForm(_Strict):
    bandwidth_fluctuation: float = 0.3
    latency_jitter: float = 0.2
    update_interval: Annotated[float | None, BeforeValidator(_parse_interval)] = None

    def to_dynamics(self) -> Dynamics:
        return Dynamics(
            bandwidth_fluctuation=self.bandwidth_fluctuation,
            latency_jitter=self.latency_jitter,
            update_interval_s=self.update_interval,
        )


class _GpuForm(_Strict):
    """GPU keys, shared by both forms; the defaults are those of East-Central-West."""

    num_gpus: int = 8
    gpu_peak: _Speed = 120e12
    gpu_memory: _Size = 80e9
    gpu_memory_bandwidth: _Bandwidth = 1600e9
    attainable_fraction: float = 0.5

    def to_domain(self, name: str, bandwidth_bytes_per_s: float, latency_s: float) -> Domain:
        return Domain(
            name=name,
            num_gpus=self.num_gpus,
            gpu_peak_flops_per_s=self.gpu_peak,
            gpu_memory_bytes=self.gpu_memory,
            gpu_memory_bandwidth_bytes_per_s=self.gpu_memory_bandwidth,
            attainable_fraction=self.attainable_fraction,
            intra_bandwidth_bytes_per_s=bandwidth_bytes_per_s,
            intra_latency_s=latency_s,
        )


class _DomainForm(_GpuForm):
    name: str
    intra_bandwidth: _Bandwidth
    intra_latency: _Latency


class _LinkForm(_Strict):
    source: str
    dest: str
    bandwidth: _Bandwidth
    latency: _Latency

    def to_links(self) -> list[Link]:
        """Both directions."""
        ends = ((self.source, self.dest), (self.dest, self.source))
        return [
            Link(
                source=source,
                target=target,
                bandwidth_bytes_per_s=self.bandwidth,
                latency_s=self.latency,
            )
            for source, target in ends
        ]


class _TopologyForm(_Strict):
    domains: list[_DomainForm]
    cross_domain_links: list[_LinkForm] = []


class _YamlForm(_Strict):
    topology: _TopologyForm
    dynamics: _DynamicsForm = _DynamicsForm()


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a mapping that gives a key twice, where YAML would let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} must be given once", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _from_yaml(text: str) -> Topology:
    try:
        # A subclass of the safe loader: plain values only.
        content = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error)
        raise ValueError(f"not readable as YAML{where}: {problem}") from error
    form = _YamlForm.model_validate(content)
    domains = [
        domain.to_domain(domain.name, domain.intra_bandwidth, domain.intra_latency)
        for domain in form.topology.domains
    ]
    links = [link for entry in form.topology.cross_domain_links for link in entry.to_links()]
    return Topology.of(domains, links, form.dynamics.to_dynamics())


_PositiveNumber = Annotated[float, Field(gt=0)]
_Number = Annotated[float, Field(ge=0)]


class _JsonForm(_Strict):
    """Matrices in Gbit/s and ms: row = source, column = target, diagonal = inside the domain.

    ``null`` in both matrices means that there is no direct link. GPU keys hold one value for all
    domains, or a list of one a domain.
    """

    topology: Literal["hierarchical"]
    num_domains: Annotated[int, Field(ge=1)]
    bandwidth_matrix: list[list[_PositiveNumber | None]]
    latency_matrix: list[list[_Number | None]]
    names: list[str] | None = None
    num_gpus: int | list[int] = 8
    gpu_peak: str | list[str] = "120TFLOP/s"
    gpu_memory: str | list[str] = "80GB"
    gpu_memory_bandwidth: str | list[str] = "1600GB/s"
    attainable_fraction: float | list[float] = 0.5
    dynamics: _DynamicsForm = _DynamicsForm()

    def check_shape(self) -> None:
        """Refuse matrices that are not square, lists of another length and names given twice."""
        size = self.num_domains
        for field in ("bandwidth_matrix", "latency_matrix"):
            matrix = getattr(self, field)
            lengths = sorted({len(row) for row in matrix})
            if len(matrix) != size or lengths != [size]:
                raise ValueError(
                    f"{field}: must be square, {size} x {size} as num_domains says; got "
                    f"{len(matrix)} rows of length {', '.join(map(str, lengths)) or 'none'}"
                )
        for field in ("names", *_GpuForm.model_fields):
            value = getattr(self, field)
            if isinstance(value, list) and len(value) != size:
                raise ValueError(f"{field}: must hold {size} entries, got {len(value)}")
        if self.names is not None and len(set(self.names)) < size:
            raise ValueError(f"names: must be unique, got {', '.join(self.names)}")

    def domains(self) -> list[Domain]:
        """Make the domains from the diagonals and the GPU keys."""
        names = self.names or [f"domain{index}" for index in range(self.num_domains)]
        domains = []
        for index, name in enumerate(names):
            values = {field: getattr(self, field) for field in _GpuForm.model_fields}
            gpus = _GpuForm.model_validate(
                {
                    field: value[index] if isinstance(value, list) else value
                    for field, value in values.items()
                }
            )
            figures = self.figures(index, index)
            if figures is None:
                raise ValueError(
                    f"bandwidth_matrix[{index}][{index}]: must be the bandwidth inside "
                    f"{name}, got null"
                )
            domains.append(gpus.to_domain(name, *figures))
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
        return (
            scale_number(bandwidth, "Gbps", BANDWIDTH_BYTES_PER_S),
            scale_number(latency, "ms", TIME_S),
        )


def _from_json(text: str) -> Topology:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not readable as JSON in line {error.lineno}: {error.msg}") from error
    form = _JsonForm.model_validate(content)
    form.check_shape()
    domains = form.domains()
    links = []
    for row, column in permutations(range(form.num_domains), 2):
        figures = form.figures(row, column)
        if figures is not None:
            links.append(
                Link(
                    source=domains[row].name,
                    target=domains[column].name,
                    bandwidth_bytes_per_s=figures[0],
                    latency_s=figures[1],
                )
            )
    return Topology.of(domains, links, form.dynamics.to_dynamics())


def _first_error(error: ValidationError) -> str:
    """Put the first of pydantic's errors into one line: field, what is allowed, what came."""
    first, *others = error.errors(include_url=False)
    field = ""
    for part in first["loc"]:
        if isinstance(part, int):
            field += f"[{part}]"
        elif part.isidentifier():  # anything else is the name of a validator
            field += f".{part}" if field else part
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
    elif first["type"] == "missing":
        message = "must be given"
    elif first["type"] == "extra_forbidden":
        message = "unknown key, it must be left out or spelled as documented"
    else:
        message = f"{first['msg']}, got {first['input']!r}"
    more = f" (and {len(others)} more)" if others else ""
    return f"{field or 'file'}: {message}{more}"
