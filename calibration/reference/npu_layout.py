"""Layout of NPUs over stages, and the direction of their messages."""

from collections.abc import Mapping

from calibration.cases.case import PlacementCase
from des.costs.bound_stages import BoundStage


class Layout:
    """Ranks of all stages; dimension 0, inside the domain, varies fastest."""

    def __init__(self, case: PlacementCase) -> None:
        self._case = case
        self._size = case.gpus_per_domain
        backwards = _backward_domains(case)
        self.ranks: tuple[tuple[int, ...], ...] = tuple(
            self._ranks(one, backwards=one.stage.domain in backwards) for one in case.stages
        )

    def domain_of(self, rank: int) -> int:
        """Domain that an NPU belongs to."""
        return rank // self._size

    def exposed_of_domains(self, exposed_of_rank: Mapping[int, float]) -> tuple[float, ...]:
        """Exposed time of each domain from that of its NPUs; 0 for domains without layers.

        That of a device is that of its NPU that finishes last, as all have computed as long; that
        of a domain of several devices is their mean.
        """
        exposed: list[list[float]] = [[] for _ in range(self._case.topology.num_domains)]
        for ranks in dict.fromkeys(self.ranks):
            exposed[self.domain_of(ranks[0])].append(max(exposed_of_rank[rank] for rank in ranks))
        return tuple(sum(each) / len(each) if each else 0.0 for each in exposed)

    def paths(self, sender: int, receiver: int) -> list[tuple[int, ...]]:
        """NPUs that a message between two stages passes by, a path for each of its even parts.

        Between domains there are as many parts as endpoint pairs, and a part is handed on by the
        NPUs of equal place in the domains of its route; its sender brings it there first where the
        stages' NPUs stand at different places. Within a domain every NPU sends to its partner.
        """
        sources, targets = self.ranks[sender], self.ranks[receiver]
        here, there = self.domain_of(sources[0]), self.domain_of(targets[0])
        if here == there:
            return list(zip(sources, targets, strict=True))
        topology = self._case.topology
        hops = [topology.links[hop].target for hop in topology.route(here, there)]
        domains = [here, *(topology.index_of[name] for name in hops)]
        parts = range(self._case.num_endpoint_pairs)
        return [self._path(sources[part], targets[part], domains) for part in parts]

    def _path(self, source: int, target: int, domains: list[int]) -> tuple[int, ...]:
        place = target % self._size
        ranks = [domain * self._size + place for domain in domains]
        return tuple(ranks) if ranks[0] == source else (source, *ranks)

    def _ranks(self, one: BoundStage, *, backwards: bool) -> tuple[int, ...]:
        first = one.stage.domain * self._size
        if self._case.granularity == "domain":
            return (first,)
        place = one.stage.device
        if backwards and one.parallelism is not None:
            place = one.parallelism.pipeline - 1 - place
        first += place * one.num_gpus
        return tuple(range(first, first + one.num_gpus))


def _backward_domains(case: PlacementCase) -> set[int]:
    """Domains whose devices stand in reverse: every second one of a pipeline.

    So the last device of one domain and the first of the next stand at equal places where all
    domains have equal devices.
    """
    backwards: set[int] = set()
    for placement in case.plan.placements:
        in_turn = dict.fromkeys(stage.domain for stage in placement.stages)
        backwards |= set(list(in_turn)[1::2])
    return backwards
