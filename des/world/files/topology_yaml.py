"""The YAML form of a topology: domains, and links between them, two-way unless they say not."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from des.base.strict_forms import StrictForm
from des.base.strict_yaml import SAFE_LOADER, require_bounded_yaml
from des.world.domain import Domain
from des.world.files.availability_form import AvailabilityForm
from des.world.files.dynamics_forms import read_law
from des.world.files.quantity_fields import Bandwidth, Latency, Price
from des.world.files.site_form import SiteForm
from des.world.files.topology_forms import TransportForm
from des.world.topology import Link, Topology, require_few_domains


class _LinkForm(StrictForm):
    source: str
    dest: str
    bandwidth: Bandwidth
    latency: Latency
    price_usd_per_gb: Price | None = None
    one_way: bool = False
    flow_cap: Bandwidth | None = None

    def to_links(self, parts: Mapping[str, Sequence[Domain]]) -> list[Link]:
        """Both directions, or the one from source to dest, between all domains of two sites."""
        sources, targets = (
            [domain.name for domain in parts[end]] if end in parts else [end]
            for end in (self.source, self.dest)
        )
        pairs = list(product(sources, targets))
        if not self.one_way:
            pairs += [(target, source) for source, target in pairs]
        return [
            Link(
                source=source,
                target=target,
                bandwidth_bytes_per_s=self.bandwidth,
                latency_s=self.latency,
                price_usd_per_gb=self.price_usd_per_gb,
                flow_cap_bytes_per_s=self.flow_cap,
            )
            for source, target in pairs
        ]


class _TopologyForm(StrictForm):
    domains: list[SiteForm]
    cross_domain_links: tuple[_LinkForm, ...] = Field(default=(), strict=False)


class _YamlForm(StrictForm):
    topology: _TopologyForm
    dynamics: object = Field(default_factory=dict)
    transport: TransportForm = TransportForm()
    availability: AvailabilityForm | None = None


class _UniqueKeyLoader(SAFE_LOADER):  # type: ignore[misc]
    """Refuses a mapping that gives a key twice, where YAML would let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be plain text", key_node.start_mark
                )
            key = key_node.value
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} must be given once", key_node.start_mark
                )
            seen.add(key)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def from_yaml(text: str, folder: Path = Path()) -> Topology:
    """Read the content of a YAML file; ``ValueError`` where it does not describe a world.

    Names of further files in it are relative to the folder.
    """
    try:
        require_bounded_yaml(text)
        # A subclass of the safe loader: plain values only.
        content = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error)
        raise ValueError(f"not readable as YAML{where}: {problem}") from error
    except RecursionError as error:
        raise ValueError("not readable as YAML: nested too deeply") from error
    return topology_of(content, folder)


def topology_of(content: object, folder: Path = Path()) -> Topology:
    """Make a world of the content of a file; ``ValueError`` where it does not describe one."""
    listed = content.get("topology") if isinstance(content, dict) else None
    domains = listed.get("domains") if isinstance(listed, dict) else None
    if isinstance(domains, list):
        require_few_domains("topology.domains", len(domains))
    form = _YamlForm.model_validate(content)
    parts = {site.name: site.domains(folder) for site in form.topology.domains}
    made = [domain for site in form.topology.domains for domain in parts[site.name]]
    require_few_domains("topology.domains", len(made))
    links = [link for site in form.topology.domains for link in site.links(parts[site.name])] + [
        link for entry in form.topology.cross_domain_links for link in entry.to_links(parts)
    ]
    law = read_law(form.dynamics, folder)
    topology = Topology.of(made, links, law, form.transport.to_transport())
    if form.availability is None:
        return topology
    return replace(topology, availability=form.availability.to_law(topology.index_of, folder))
