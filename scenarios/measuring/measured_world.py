"""A world made of measurements alone: the sites, GPUs and links that they name."""

from collections.abc import Mapping, Sequence

from calibration.measured.runs import FITTED_FIGURES
from calibration.measurements.device_names import kind_of_device
from calibration.measurements.reading import Reading
from des.devices.gpu_kinds import gpu_kind_named
from des.world.domain import Domain
from des.world.kernel_figures import FITTED_KERNELS
from des.world.topology import Link, Topology
from scenarios.measuring.combined import bandwidths, latencies


def measured_world(readings: Sequence[Reading], gpus: Mapping[str, tuple[int, str]]) -> Topology:
    """Make a world: a domain a site, and the links whose bandwidth was measured one way at least.

    A way back that was not measured is as the way there. GPUs are those that a collective names, or
    those of ``gpus``.

    Raises
    ------
    ValueError
        If there are no two sites, GPUs of a site are not known, or a link has no latency.
    """
    rates, times = bandwidths(readings), latencies(readings)
    sites = list(
        dict.fromkeys(
            site for one in readings for site in (one.source_site, one.target_site) if site
        )
    )
    for site in gpus:
        if site not in sites:
            raise ValueError(
                f"--site-gpus must name a measured site, {', '.join(sites)}; got {site}"
            )
    links: list[Link] = []
    for source, target in rates:
        for ends in ((source, target), (target, source)):
            latency = times.get((min(ends), max(ends)))
            if latency is None:
                raise ValueError(
                    f"link {source}->{target}: latency must be measured, by ping or mtr; got none"
                )
            if ends not in {(one.source, one.target) for one in links}:
                links.append(
                    Link(
                        source=ends[0],
                        target=ends[1],
                        bandwidth_bytes_per_s=rates.get(ends, rates[source, target]).value,
                        latency_s=latency.value,
                    )
                )
    return Topology.of([_domain(site, readings, gpus) for site in sites], links)


def _domain(site: str, readings: Sequence[Reading], gpus: Mapping[str, tuple[int, str]]) -> Domain:
    count, name = gpus[site] if site in gpus else _find_gpus(site, readings)
    kind = gpu_kind_named(site, name)
    return Domain(
        name=site,
        num_gpus=count,
        gpu_peak_flops_per_s=kind.peak_flops_per_s,
        gpu_memory_bytes=kind.memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=kind.memory_bandwidth_bytes_per_s,
        attainable_fraction=1.0,
        intra_bandwidth_bytes_per_s=kind.ports.nvlink_bytes_per_s * kind.ports.most_nvlinks
        or kind.ports.pcie_bytes_per_s,
        intra_latency_s=FITTED_FIGURES.step_latency_s,
        kernels=FITTED_KERNELS,
        gpu_kind=kind.name if kind.is_product else None,
    )


def _find_gpus(site: str, readings: Sequence[Reading]) -> tuple[int, str]:
    """Number and kind of the GPUs of the largest collective inside a site."""
    mine = [one for one in readings if one.hosts and {one.source_site, one.target_site} == {site}]
    largest = max(mine, key=lambda one: len(one.hosts), default=None)
    device = None if largest is None else largest.fact("device")
    if largest is None or device is None:
        raise ValueError(
            f"domain {site}: GPUs must be known by a collective inside the site, or given with "
            f"--site-gpus {site}=8*h100; got neither"
        )
    return len(largest.hosts), kind_of_device(f"domain {site}", device)
