"""Candidates of the search: sites in order with their stages and layers, and the plans they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from agents.search.settings import BoundSetting
from des import GradientExchange, Parallelism, Placement, Plan, Topology
from des.plan.plan import split_evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSites:
    """Sites of every pipeline of a plan, in the order of the model."""

    chains: tuple[tuple[int, ...], ...]

    @classmethod
    def of_plan(cls, plan: Plan) -> Self:
        """Sites that hold layers, each once a pipeline."""
        return cls(
            chains=tuple(
                tuple(dict.fromkeys(stage.domain for stage in stages))
                for stages in plan.stages_of_replicas
            )
        )

    @property
    def sites(self) -> frozenset[int]:
        """All sites in use."""
        return frozenset(site for chain in self.chains for site in chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Stages and layers of the sites of every pipeline under a setting.

    ``chains`` has the sites of each replica in the order of the model, ``splits`` devices and
    layers of each of them; ``counts`` the layers of each stage of one replica, where they are not
    as even as can be in each site. ``estimate_s`` is the time by the recurrence of the search. [s]
    """

    setting: BoundSetting
    chains: tuple[tuple[int, ...], ...]
    splits: tuple[tuple[tuple[int, int], ...], ...]
    estimate_s: float
    counts: tuple[int, ...] = ()

    @property
    def sites(self) -> frozenset[int]:
        """All sites in use."""
        return frozenset(site for chain in self.chains for site in chain)

    @property
    def num_workers(self) -> int:
        """Stages' GPUs of one pipeline, all of which do their part of every microbatch."""
        return sum(devices for devices, _ in self.splits[0])

    @property
    def stage_layers(self) -> tuple[int, ...]:
        """Layers of each stage of one replica."""
        if self.counts:
            return self.counts
        chunks = self.setting.num_chunks
        if len(self.splits[0]) == 1:
            devices, layers = self.splits[0][0]
            return split_evenly(layers, devices * chunks)
        return tuple(
            count
            for chunk in range(chunks)
            for devices, layers in self.splits[0]
            for count in split_evenly(split_evenly(layers, chunks)[chunk], devices)
        )

    def plan(self, topology: Topology) -> Plan:
        """Return the plan that simulates it."""
        setting = self.setting
        first, *others = self._placements()
        is_sharded = bool(others) and setting.degrees.sharding == "optimiser"
        return Plan(
            placement=first,
            replicas=tuple(others),
            schedule=setting.schedule_name(self.num_workers),
            parallelism=self._parallelism(topology),
            exchange=GradientExchange(sharded=is_sharded),
            sends="blocking" if setting.is_blocking else "overlapped",
        )

    def _placements(self) -> list[Placement]:
        """Layers of every replica."""
        num_chunks = self.setting.num_chunks
        if self.counts:
            own = zip(self.chains[0], self.splits[0], strict=True)
            sites = [site for site, (devices, _) in own for _ in range(devices)] * num_chunks
            return [Placement.of_stages(list(zip(sites, self.counts, strict=True)))]
        return [
            _placement(chain, split, num_chunks)
            for chain, split in zip(self.chains, self.splits, strict=True)
        ]

    def _parallelism(self, topology: Topology) -> tuple[Parallelism, ...]:
        """Division of every site, if any; one that is not in use counts as a GPU of its own."""
        degrees = self.setting.degrees
        if degrees.is_perfect:
            return ()
        found = [Parallelism()] * topology.num_domains
        for chain, split in zip(self.chains, self.splits, strict=True):
            own_chunks = self.setting.num_chunks if len(chain) == 1 else 1
            for site, (devices, _) in zip(chain, split, strict=True):
                chunks = own_chunks if devices > 1 else 1
                found[site] = degrees.parallelism(devices, chunks)
        return tuple(found)


def _placement(
    chain: Sequence[int], split: Sequence[tuple[int, int]], num_chunks: int
) -> Placement:
    """Layers of one pipeline: round and round the sites, once for every chunk."""
    if len(chain) == 1:
        return Placement.contiguous(chain, [split[0][1]])
    shares = [split_evenly(layers, num_chunks) for _, layers in split]
    counts = [share[chunk] for chunk in range(num_chunks) for share in shares]
    return Placement.contiguous(list(chain) * num_chunks, counts)
