"""A domain of a YAML topology: one kind of GPU, or a site of several that share its network."""

from itertools import permutations
from pathlib import Path

from des.world.domain import Domain
from des.world.files.quantity_fields import Bandwidth, Latency
from des.world.files.topology_forms import GpuForm
from des.world.topology import Link


class _KindForm(GpuForm):
    """GPUs of one kind; what is left out is as the site has it."""

    intra_bandwidth: Bandwidth | None = None
    intra_latency: Latency | None = None

    def domain(self, name: str, folder: Path) -> Domain:
        """Make the domain."""
        for key in ("intra_bandwidth", "intra_latency"):
            if getattr(self, key) is None:
                raise ValueError(f"domain {name}: {key} must be given, got none")
        assert self.intra_bandwidth is not None
        assert self.intra_latency is not None
        return self.to_domain(name, self.intra_bandwidth, self.intra_latency, folder)


class SiteForm(_KindForm):
    """An entry of ``domains``: a domain, or with ``gpus`` a site with a domain for each kind.

    Keys of the site are those of its kinds that do not have their own. ``site_bandwidth`` and
    ``site_latency`` are of the network between every two kinds; left out, those of the network
    cards of a node, of the kind that has less of them.
    """

    name: str
    gpus: list[_KindForm] | None = None
    site_bandwidth: Bandwidth | None = None
    site_latency: Latency | None = None

    def domains(self, folder: Path) -> list[Domain]:
        """Make a domain, or one for each kind of GPU, named as ``Frankfurt/h100``."""
        if self.gpus is None:
            for key in ("site_bandwidth", "site_latency"):
                if getattr(self, key) is not None:
                    raise ValueError(
                        f"domain {self.name}: {key} must be left out without gpus, got it"
                    )
            return [self.domain(self.name, folder)]
        if not self.gpus or self.site is not None:
            found = "no kind" if not self.gpus else f"site {self.site}"
            raise ValueError(
                f"domain {self.name}: gpus must hold at least one kind, of the site "
                f"{self.name}; got {found}"
            )
        kinds = [kind.gpu for kind in self.gpus]
        if len(set(kinds)) < len(kinds):
            raise ValueError(
                f"domain {self.name}: gpus must hold each kind once, got {', '.join(kinds)}"
            )
        given = self.model_fields_set & set(_KindForm.model_fields)
        common = {"site": self.name, **{key: getattr(self, key) for key in given}}
        return [
            kind.model_copy(
                update={
                    key: value for key, value in common.items() if key not in kind.model_fields_set
                }
            ).domain(f"{self.name}/{kind.gpu}", folder)
            for kind in self.gpus
        ]

    def links(self, domains: list[Domain]) -> list[Link]:
        """Join the domains of the site, every two of them."""
        return [
            Link(
                source=one.name,
                target=other.name,
                bandwidth_bytes_per_s=self._of_cards("site_bandwidth", one, other),
                latency_s=self._of_cards("site_latency", one, other),
            )
            for one, other in permutations(domains, 2)
        ]

    def _of_cards(self, key: str, *domains: Domain) -> float:
        """Figure of the network of the site, or else of the network cards of a node."""
        given: float | None = getattr(self, key)
        if given is not None:
            return given
        cards = [domain.nodes for domain in domains if domain.nodes is not None]
        if len(cards) < len(domains):
            lacking = next(domain.name for domain in domains if domain.nodes is None)
            raise ValueError(
                f"domain {self.name}: {key} must be given, as {lacking} has no nodes; got none"
            )
        if key == "site_latency":
            return max(nodes.nic_latency_s for nodes in cards)
        return min(nodes.nics_per_node * nodes.nic_bandwidth_bytes_per_s for nodes in cards)
