"""Figures of all sites under a setting, as the compiled loops of the search read them.

Sites that are alike share them, and settings share what does not depend on their differences; so
do searches of several worlds, such as a world and the same without one of its links.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.figures import (
    hops_between,
    message_ways,
    outer_state_before_bytes,
    parameters_before,
    passes_before_s,
    state_before_bytes,
    sums_and_update_s,
    wires_s,
)
from agents.search.kernels.records import SiteFigures, SiteLevels, SiteMemory
from agents.search.settings import (
    BoundSetting,
    Degrees,
    differences,
    num_stages_of,
    together_of,
)
from agents.search.shared_parts import SharedParts
from des import Corrections, Topology
from des.world.access import OPEN
from des.world.domain import Domain


@dataclass(frozen=True, kw_only=True)
class FigureTables:
    """Parts of the figures of a world and a job, each worked out once."""

    topology: Topology
    job: TrainingJob
    corrections: Corrections
    shared: SharedParts
    _ways: dict[float, np.ndarray] = field(default_factory=dict)
    _figures: dict[Hashable, SiteFigures] = field(default_factory=dict)

    @cached_property
    def _inside(self) -> int:
        """Number of the job and of the corrections that count inside sites."""
        inside = replace(
            self.corrections, wan_bandwidth_factor=1.0, wan_latency_factor=1.0, transport=None
        )
        return self.shared.number((self.job, inside))

    @cached_property
    def _job_number(self) -> int:
        return self.shared.number(self.job)

    @cached_property
    def bare_number(self) -> int:
        """Number of the job and of the sites, corrections and links apart."""
        kinds, kind_of = self._kinds
        return self.shared.number((self._job_number, kinds, kind_of.tobytes()))

    @cached_property
    def sites_number(self) -> int:
        """Number of the sites with all that counts inside them."""
        return self.shared.number((self._inside, self.bare_number))

    @cached_property
    def _numbers(self) -> list[int]:
        """Number of each kind of site with all that counts inside it."""
        return [self.shared.number((self._inside, kind)) for kind in self._kinds[0]]

    @cached_property
    def _kinds(self) -> tuple[tuple[Domain, ...], np.ndarray]:
        """Domains that differ by more than names, prices and ways out; which of them sites are."""
        bare = [
            replace(domain, name="site", gpu_price_usd_per_hour=None, site=None, access=OPEN)
            for domain in self.topology.domains
        ]
        number = {kind: at for at, kind in enumerate(dict.fromkeys(bare))}
        return tuple(number), np.array([number[domain] for domain in bare], np.int64)

    @cached_property
    def _hops(self) -> tuple[np.ndarray, np.ndarray]:
        return hops_between(self.topology, self.corrections)

    def ways_s(self, num_bytes: float) -> np.ndarray:
        """Transfer and latency of a message between all sites, see `message_ways`. [s]"""
        if num_bytes not in self._ways:
            each_s = self.corrections.message_overhead_s
            self._ways[num_bytes] = message_ways(self._hops, num_bytes, each_s)
        return self._ways[num_bytes]

    def num_devices(self, degrees: Degrees) -> np.ndarray:
        """Stages of some degrees that each site holds, (sites,)."""
        kinds, kind_of = self._kinds
        return self.shared.part(
            ("devices", self.bare_number, degrees),
            lambda: np.array([num_stages_of(kind, degrees) for kind in kinds], np.int64)[kind_of],
        )

    def fluid_s(self, setting: BoundSetting) -> np.ndarray:
        """Time of an iteration if each site did all and its devices were always busy, (sites,). [s]

        Infinite where a site has no device.
        """
        degrees = setting.degrees
        return self.shared.part(
            ("fluid", self.sites_number, degrees, setting.microbatch_size, setting.recomputation),
            lambda: self._fluid_s(setting),
        )

    def _fluid_s(self, setting: BoundSetting) -> np.ndarray:
        num_devices = self.num_devices(setting.degrees)
        count = self.job.num_sequences / together_of(setting)
        whole_s = count * self._by_site(self._both_s, setting, num_devices)
        return np.where(num_devices > 0, whole_s / np.maximum(num_devices, 1), np.inf)

    def _both_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        """Time of a forward and a whole backward pass of all layers."""
        passes_s = self._passes_s(setting, kind, count)
        both_s: np.ndarray = passes_s[0, -1] + passes_s[1, -1]
        return both_s

    def least_work_s(self, setting: BoundSetting) -> np.ndarray:
        """Least time of all passes of a microbatch in each layer, (sites, layers). [s]

        Infinite at sites that have no stage.
        """
        num_devices = self.num_devices(setting.degrees)
        found = self._by_site(self._work_s, setting, num_devices)
        found[num_devices == 0] = np.inf
        return found

    def _work_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        passes_s = self._passes_s(setting, kind, count)
        forward, whole, to_input, to_weights = np.diff(passes_s, axis=-1)
        found: np.ndarray = forward + np.minimum(whole, to_input + to_weights)
        return found

    def levels(self, setting: BoundSetting) -> tuple[SiteLevels, SiteMemory]:
        """Layers that devices of all sites can do in a time, and hold; their memory."""
        key = "levels", self.sites_number, *differences(setting)
        return self.shared.part(key, lambda: self._levels(setting))

    def _levels(self, setting: BoundSetting) -> tuple[SiteLevels, SiteMemory]:
        num_devices = self.num_devices(setting.degrees)
        both_s = self._by_site(self._both_s, setting, num_devices)
        layer_s = np.where(num_devices > 0, both_s / self.job.layer_count, np.inf)
        gpus_in, domains = setting.degrees.gpus_in, self.topology.domains
        room_bytes = np.array([one.gpu_memory_bytes * gpus_in(one) for one in domains])
        _, needed_bytes, least_bytes = self._layer_bytes(setting)
        most = np.searchsorted(needed_bytes, room_bytes, side="right") - 1
        levels = SiteLevels(layer_s, num_devices, np.where(num_devices > 0, most, 0))
        return levels, SiteMemory(room_bytes, least_bytes)

    def _layer_bytes(self, setting: BoundSetting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """State before each layer, also with a microbatch's activations; least of a layer, (2,)."""

        def work_out() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            kept_bytes = np.array(setting.workload(self.job).sums_before.activation_bytes, float)
            state_bytes = self._state_bytes(setting)
            least_bytes = np.diff([state_bytes, kept_bytes]).min(axis=1)
            return state_bytes, state_bytes + kept_bytes, least_bytes

        return self.shared.part(("bytes", self._job_number, *differences(setting)), work_out)

    def _state_bytes(self, setting: BoundSetting) -> np.ndarray:
        """Model state of a device before each layer."""
        parameters, parallelism = self._parameters(setting), setting.degrees.parallelism(1)
        gradient_bytes = setting.workload(self.job).gradient_bytes
        found = state_before_bytes(parameters, parallelism, gradient_bytes, setting.num_replicas)
        if setting.has_outer_state:
            found = found + outer_state_before_bytes(parameters, parallelism)
        return found

    def representatives(self, sites: Iterable[int]) -> list[int]:
        """The first of some sites of each kind."""
        kind_of = self._kinds[1].tolist()
        return list({kind_of[site]: site for site in sorted(sites, reverse=True)}.values())

    def figures(self, setting: BoundSetting) -> SiteFigures:
        """Return the figures of every site for stages of a setting.

        Raises
        ------
        ValueError
            If the layers of a domain have no times for the workload, such as a profile without a
            point.
        """
        own = differences(setting)
        if own not in self._figures:
            inside = self.shared.part(
                ("figures", self.sites_number, *own), lambda: self._inner(setting)
            )
            outer_s = self.ways_s(setting.workload(self.job).message_bytes)
            self._figures[own] = inside._replace(outer_s=outer_s)
        return self._figures[own]

    def _inner(self, setting: BoundSetting) -> SiteFigures:
        """Figures without the ways between sites."""
        degrees, workload = setting.degrees, setting.workload(self.job)
        num_devices = self.num_devices(degrees)
        is_there, sums = num_devices > 0, workload.sums_before
        passes_s = self._by_site(self._passes_s, setting, num_devices)
        ends_s = self._by_site(self._ends_s, setting, num_devices)
        wires = self._by_site(self._wires_s, setting, num_devices)
        (levels, memory), (state_bytes, _, _) = self.levels(setting), self._layer_bytes(setting)
        kept_bytes = np.array(sums.activation_bytes, float)
        return SiteFigures(
            passes_s=passes_s,
            state_bytes=np.multiply.outer(is_there, state_bytes),
            kept_bytes=np.multiply.outer(is_there, kept_bytes),
            halved_bytes=np.multiply.outer(is_there, np.array(sums.weight_input_bytes, float)),
            room_bytes=np.where(is_there, memory.room_bytes, 1.0),
            parameters=self._parameters(setting),
            sums_s=ends_s[:, :8].reshape(-1, 2, 2, 2).copy(),
            update_s=np.ascontiguousarray(ends_s[:, 8:]),
            num_devices=num_devices,
            layer_s=levels.layer_s,
            most_layers=levels.most_layers,
            inner_s=np.ascontiguousarray(wires[:, 0]),
            back_s=np.ascontiguousarray(wires[:, 1]),
            outer_s=np.zeros(0),
        )

    def _by_site(
        self,
        of_kind: Callable[[BoundSetting, int, int], np.ndarray],
        setting: BoundSetting,
        num_devices: np.ndarray,
    ) -> np.ndarray:
        """Figures of every site, those of sites without devices 0."""
        kinds, kind_of = self._kinds
        counts = dict(zip(kind_of.tolist(), num_devices.tolist(), strict=True))
        own = {kind: of_kind(setting, kind, count) for kind, count in counts.items() if count}
        first, *others = own.values()
        sizes = first.shape
        if any(one.shape != sizes for one in others):
            sizes = tuple(np.max([one.shape for one in own.values()], axis=0))
        found = np.zeros((len(kinds), *sizes))
        for kind, one in own.items():
            found[(kind, *map(slice, one.shape))] = one
        by_site: np.ndarray = found[kind_of]
        return by_site

    def _passes_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        """Times of passes; copies do the same, each with its own sequences, if they are alone."""
        degrees, size = setting.degrees, setting.microbatch_size
        if degrees.context == degrees.expert == 1:
            count = 1
            degrees = Degrees(tensor=degrees.tensor, is_perfect=degrees.is_perfect)

        def work_out() -> np.ndarray:
            workload = replace(setting, degrees=degrees).workload(self.job)
            domain, parallelism = self._kinds[0][kind], degrees.division(count)
            return passes_before_s(workload, domain, parallelism, self.corrections)

        key = "passes", self._numbers[kind], count, degrees, size, setting.recomputation
        return self.shared.part(key, work_out)

    def _ends_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        degrees, num_replicas = setting.degrees, setting.num_replicas

        def work_out() -> np.ndarray:
            gradient_bytes = setting.workload(self.job).gradient_bytes
            domain, parallelism = self._kinds[0][kind], degrees.division(count)
            return sums_and_update_s(
                gradient_bytes, domain, parallelism, self.corrections, num_replicas
            )

        key = "ends", self._numbers[kind], degrees, setting.gradient_precision, num_replicas
        return self.shared.part(key, work_out)

    def _wires_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        degrees = setting.degrees

        def work_out() -> np.ndarray:
            workload = setting.workload(self.job)
            domain, parallelism = self._kinds[0][kind], degrees.parallelism(count)
            return wires_s(workload, domain, parallelism, self.corrections)

        key = "wires", self._numbers[kind], degrees, setting.microbatch_size
        return self.shared.part(key, work_out)

    def _parameters(self, setting: BoundSetting) -> np.ndarray:
        """Parameters before each layer, see `SiteFigures`."""
        degrees = setting.degrees
        return self.shared.part(
            ("parameters", self._job_number, degrees.expert, degrees.copies),
            lambda: parameters_before(setting.workload(self.job), degrees.parallelism(1)),
        )
