"""Figures of all sites under a setting, as the compiled loops of the search read them.

Sites that are alike share them, and settings share what does not depend on their differences; so
do searches of several worlds, such as a world and the same without one of its links.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.job_layers import JobLayers
from agents.search.kernels.records import SiteFigures, SiteLevels, SiteMemory
from agents.search.settings import (
    BoundSetting,
    Degrees,
    differences,
    num_stages_of,
    of_one_copy,
    together_of,
)
from agents.search.shared_parts import SharedParts
from agents.search.site_figures import (
    hops_between,
    message_ways,
    passes_before_s,
    sums_and_updates_s,
    wires_s,
)
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
    _both: dict[Hashable, list[float]] = field(default_factory=dict)

    @cached_property
    def _inner_corrections(self) -> Corrections:
        return replace(
            self.corrections, wan_bandwidth_factor=1.0, wan_latency_factor=1.0, transport=None
        )

    @cached_property
    def _of_job(self) -> JobLayers:
        return JobLayers(job=self.job, shared=self.shared)

    @cached_property
    def bare_number(self) -> int:
        """Number of the job and of the sites, corrections and links apart."""
        kinds, kind_of = self._kinds
        return self.shared.number((self._of_job.number, kinds, kind_of.tobytes()))

    @cached_property
    def sites_number(self) -> int:
        """Number of the sites with all that counts inside them."""
        return self.shared.number((self.bare_number, self._inner_corrections))

    @cached_property
    def _untimed(self) -> Corrections:
        """Corrections that count inside sites but those of times of layers."""
        return replace(self._inner_corrections, compute_time_factor=1.0)

    @cached_property
    def numbers(self) -> list[tuple[int, int, int]]:
        """Numbers of each kind of site with all that counts inside it.

        Of its GPUs and servers alone, of the whole site, and of that without times of layers.
        """
        number, kinds = self.shared.number, self._kinds[0]
        inner, untimed = (self.job, self._inner_corrections), (self.job, self._untimed)
        return [
            (number((inner, one.resized(1))), number((inner, one)), number((untimed, one)))
            for one in kinds
        ]

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
        return self._devices(degrees)[1]

    def _devices(self, degrees: Degrees) -> tuple[list[int], np.ndarray]:
        """Stages of some degrees that each kind of site holds, and that each site does."""
        kinds, kind_of = self._kinds

        def work_out() -> tuple[list[int], np.ndarray]:
            counts = [num_stages_of(kind, degrees) for kind in kinds]
            return counts, np.array(counts, np.int64)[kind_of]

        return self.shared.part(("devices", self.bare_number, degrees), work_out)

    def fluid_s(self, settings: Sequence[BoundSetting]) -> np.ndarray:
        """Times of iterations if each site did all and its devices were always busy. [s]

        Shaped (settings, sites), infinite where a site has no device.
        """
        num_devices = np.array([self.num_devices(one.degrees) for one in settings])
        counts = self.job.num_sequences / np.array(list(map(together_of, settings)))
        whole_s = counts[:, np.newaxis] * self._both_s(settings)
        return np.where(num_devices > 0, whole_s / np.maximum(num_devices, 1), np.inf)

    def _both_s(self, settings: Sequence[BoundSetting]) -> np.ndarray:
        """Times of both passes of all layers, (settings, sites), 0 at sites without devices."""
        found = []
        for one in settings:
            key = one.degrees, one.microbatch_size, one.recomputation
            if key not in self._both:
                counts = enumerate(self._devices(one.degrees)[0])
                all_s = [self._passes_s(one, *each) if each[1] else None for each in counts]
                self._both[key] = [0.0 if own is None else own[0, -1] + own[1, -1] for own in all_s]
            found.append(self._both[key])
        return np.array(found)[:, self._kinds[1]]

    def passes_s(self, setting: BoundSetting) -> np.ndarray:
        """Times of F, B, D and W, summed up before each layer, (sites, 4, L + 1). [s]"""
        return self._by_site(self._passes_s, setting)

    def levels(self, setting: BoundSetting) -> tuple[SiteLevels, SiteMemory]:
        """Layers that devices of all sites can do in a time, and hold; their memory."""
        if (key := ("levels", self.sites_number, *differences(setting))) not in self.shared.parts:
            self.all_levels(key, (setting,))
        found: tuple[SiteLevels, SiteMemory] = self.shared.parts[key]
        return found

    def all_levels(
        self, name: Hashable, settings: Sequence[BoundSetting]
    ) -> tuple[SiteLevels, SiteMemory]:
        """`levels` under each of some settings, which have this name among shared parts."""
        num_devices, most_layers, memory = self.shared.part(
            ("held", self.bare_number, name), lambda: self._held(settings)
        )
        both_s = self._both_s(settings)
        layer_s = np.where(num_devices > 0, both_s / self.job.layer_count, np.inf)
        levels = SiteLevels(layer_s, num_devices, most_layers)
        for own, *rows in zip(settings, *levels, *memory, strict=True):
            key = "levels", self.sites_number, *differences(own)
            self.shared.parts[key] = SiteLevels(*rows[:3]), SiteMemory(*rows[3:])
        return levels, memory

    def _held(self, settings: Sequence[BoundSetting]) -> tuple[np.ndarray, np.ndarray, SiteMemory]:
        """Devices of all sites, layers that one can hold, and its memory, by settings."""
        num_devices = np.array([self.num_devices(one.degrees) for one in settings])
        room_of = {
            each: [one.gpu_memory_bytes * each.gpus_in(one) for one in self.topology.domains]
            for each in dict.fromkeys(one.degrees for one in settings)
        }
        room_bytes = np.array([room_of[one.degrees] for one in settings])
        _, needed, least = zip(*map(self._of_job.layer_bytes, settings), strict=True)
        rows = zip(needed, room_bytes, strict=True)
        most = np.array([np.searchsorted(row, own, side="right") - 1 for row, own in rows])
        memory = SiteMemory(room_bytes, np.array(least))
        return num_devices, np.where(num_devices > 0, most, 0), memory

    def kinds_of(self, sites: Sequence[int]) -> tuple[int, ...]:
        """Number of the kind of each of some sites."""
        return tuple(self._kinds[1][list(sites)].tolist())

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
            outer_s = self.ways_s(setting.workload(self.job).message_bytes)
            self._figures[own] = self.inside(setting)._replace(outer_s=outer_s)
        return self._figures[own]

    def inside(self, setting: BoundSetting) -> SiteFigures:
        """Return the figures of every site without the ways between sites."""
        key = "figures", self.sites_number, *differences(setting)
        return self.shared.part(key, lambda: self._inner(setting))

    def _inner(self, setting: BoundSetting) -> SiteFigures:
        key = "fixed", self.bare_number, self._untimed, *differences(setting)
        fixed = self.shared.part(key, lambda: self._work_out_fixed(setting))
        ends_s = self._by_site(self._ends_s, setting)
        return fixed._replace(
            passes_s=self.passes_s(setting),
            sums_s=ends_s[..., :8].reshape(*ends_s.shape[:2], 2, 2, 2),
            update_s=np.ascontiguousarray(ends_s[:, 0, 8:]),
            layer_s=self.levels(setting)[0].layer_s,
        )

    def _work_out_fixed(self, setting: BoundSetting) -> SiteFigures:
        """Figures that have nothing to do with times of layers."""
        (levels, memory), none = self.levels(setting), np.zeros(0)
        state_bytes = self._of_job.layer_bytes(setting)[0]
        sums = setting.workload(self.job).sums_before
        is_there, wires = levels.num_devices > 0, self._by_site(self._wires_s, setting)
        return SiteFigures(
            passes_s=none,
            state_bytes=np.multiply.outer(is_there, state_bytes),
            kept_bytes=np.multiply.outer(is_there, np.array(sums.activation_bytes, float)),
            halved_bytes=np.multiply.outer(is_there, np.array(sums.weight_input_bytes, float)),
            room_bytes=np.where(is_there, memory.room_bytes, 1.0),
            parameters=self._of_job.parameters(setting),
            sums_s=none,
            update_s=none,
            num_devices=levels.num_devices,
            layer_s=none,
            most_layers=levels.most_layers,
            inner_s=np.ascontiguousarray(wires[:, 0]),
            back_s=np.ascontiguousarray(wires[:, 1]),
            outer_s=none,
        )

    def _by_site(
        self,
        of_kind: Callable[[BoundSetting, int, int], np.ndarray],
        setting: BoundSetting,
    ) -> np.ndarray:
        """Figures of every site, those of sites without devices 0."""
        kinds, kind_of = self._kinds
        counts = enumerate(self._devices(setting.degrees)[0])
        own = {kind: of_kind(setting, kind, count) for kind, count in counts if count}
        sizes = max(one.shape for one in own.values())  # numbers of devices alone may differ
        found = np.zeros((len(kinds), *sizes))
        for kind, one in own.items():
            found[kind][tuple(map(slice, one.shape))] = one
        by_site: np.ndarray = found[kind_of]
        return by_site

    def _passes_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        """Times of passes; copies do the same, each with its own sequences, if they are alone."""
        degrees, size = setting.degrees, setting.microbatch_size
        if degrees.context == degrees.expert == 1:
            count, degrees = 1, of_one_copy(degrees)

        def work_out() -> np.ndarray:
            workload = replace(setting, degrees=degrees).workload(self.job)
            domain, parallelism = self._kinds[0][kind], degrees.division(count)
            return passes_before_s(workload, domain, parallelism, self.corrections)

        number = self.numbers[kind][int(degrees.copies > 1 or degrees.is_perfect)]
        key = "passes", number, count, degrees, size, setting.recomputation
        return self.shared.part(key, work_out)

    def _ends_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        """Sums and updates of devices, (devices, 11), or of one where all sites have equal ones."""
        degrees, num_replicas = setting.degrees, setting.num_replicas
        num_rows = count if any(one.has_priced_racks for one in self._kinds[0]) else 1

        def work_out() -> np.ndarray:
            gradient_bytes = setting.workload(self.job).gradient_bytes
            domain, parallelism = self._kinds[0][kind], degrees.division(count)
            own = gradient_bytes, domain, parallelism, self.corrections, num_replicas
            return sums_and_updates_s(*own, num_devices=num_rows)

        own = degrees, setting.gradient_precision, num_replicas
        return self.shared.part(("ends", self.numbers[kind][1], num_rows, *own), work_out)

    def _wires_s(self, setting: BoundSetting, kind: int, count: int) -> np.ndarray:
        degrees = setting.degrees

        def work_out() -> np.ndarray:
            workload = setting.workload(self.job)
            domain, parallelism = self._kinds[0][kind], degrees.parallelism(count)
            return wires_s(workload, domain, parallelism, self.corrections)

        sizes = degrees.tensor, degrees.data, degrees.context, setting.microbatch_size
        key = "wires", self.numbers[kind][2], count, *sizes
        return self.shared.part(key, work_out)
