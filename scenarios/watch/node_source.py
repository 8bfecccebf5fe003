"""Nodes of a Kubernetes cluster as a source: GPUs that sites have, beside other measurements."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.replanning.observed_world import WorldObservation
from calibration.measurements.sites import Sites
from des.devices.cluster_files.node_labels import LabelledNode, read_node_object
from scenarios.k8s.api_server import ApiError, ApiServer
from scenarios.watch.folder_source import Arrivals, FolderSource
from scenarios.watch.url_source import UrlSource

_PLACES = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_SEEN = "nodes of "


@dataclass(kw_only=True)
class NodeSource:
    """Lists the nodes of a cluster in every round; a GPU that its device plugin lost is not there.

    A node is of the site whose pattern its name fits, else of the one that a label of region or
    zone names. Nodes that are not ready have no GPUs. Of servers, whole ones count.

    Attributes
    ----------
    beside
        Where other measurements come from.
    per_server
        GPUs of a server of each site; 1 where servers are not known.
    """

    api: ApiServer
    beside: FolderSource | UrlSource
    sites: Sites
    per_server: Mapping[str, int]
    clock: Callable[[], float] = time.time
    _seen: set[str] = field(default_factory=set)

    @property
    def known(self) -> dict[str, str | int]:
        """Memory of the other source, and sites that have had nodes in this cluster."""
        return self.beside.known | {f"{_SEEN}{site}": 1 for site in sorted(self._seen)}

    @known.setter
    def known(self, content: Mapping[str, str | int]) -> None:
        self._seen = {one.removeprefix(_SEEN) for one in content if one.startswith(_SEEN)}
        self.beside.known = {name: one for name, one in content.items() if _SEEN not in name}

    def arrivals(self) -> Arrivals:
        """Return what is new in the other source, and the GPUs that sites have now."""
        found = self.beside.arrivals()
        try:
            items, _ = self.api.listed("/api/v1/nodes")
            gpus = self._gpus(items)
        except (ApiError, ValueError) as error:
            return Arrivals(
                observations=found.observations, problems=(*found.problems, f"nodes: {error}")
            )
        now_s = self.clock()
        own = (
            WorldObservation(time_s=now_s, about=site, figure="num_gpus", value=float(gpus[site]))
            for site in sorted(self._seen)
        )
        return Arrivals(observations=(*found.observations, *own), problems=found.problems)

    def _gpus(self, items: Sequence[Mapping[str, Any]]) -> Counter[str]:
        """GPUs of each site that has nodes."""
        found: Counter[str] = Counter()
        for item in items:
            node = read_node_object(item)
            site = self._site_of(node)
            if site is None or node.num_gpus is None:
                continue
            self._seen.add(site)
            if _is_ready(item):
                found[site] += node.num_gpus - node.num_gpus % self.per_server[site]
        return found

    def _site_of(self, node: LabelledNode) -> str | None:
        named = (self.sites.of(node.name), *(node.labels.get(one) for one in _PLACES))
        return next((one for one in named if one in self.per_server), None)


def _is_ready(item: Mapping[str, Any]) -> bool:
    conditions = item["status"].get("conditions") or ()
    return any((one.get("type"), one.get("status")) == ("Ready", "True") for one in conditions)
