"""Estimate the time of a collective over GPUs of a server, or of several alike."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from des.base.atomic_write import write_atomically
from des.base.checks import prefixed_errors, require_positive
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.base.quantities import BANDWIDTH_BYTES_PER_S, SIZE_BYTES, parse_quantity
from des.devices.server import Server
from scenarios.devices.placement_flags import aligned, comma_separated, tell
from scenarios.devices.sources import ServerFlags, server_of

with lazy_imports(__name__):
    from calibration.measured import collective_table
    from des.costs import device_collectives, device_groups
    from des.devices import figures_file
    from des.devices.link_figures import DeviceFigures, NetworkConstants
    from des.figures import paper
    from scenarios.devices import pictures

EXAMPLES = """\
examples:
  python -m scenarios.devices estimate --simulate dgx-h100 --bytes 1MiB,100e6,1GiB
  python -m scenarios.devices estimate --file topo.txt --gpu v100 --gpu-numbers 0,1,2,3
  python -m scenarios.devices estimate --simulate dgx-a100 --servers 4 --algorithm best
  python -m scenarios.devices estimate --machine a100_dgx --servers 2 --plot all_reduce.png

times are max(floor, launch + steps + bytes / bandwidth) with constants fitted by
python -m calibration devices; as_fitted is the algorithm that explains the measured times, a ring,
and below 1 MiB, where none were taken, the quicker of ring and tree
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerFlags):
    """Flags of an estimate."""

    machine: str | None = option(
        None, "machine of the measured table, with its network, in place of a server"
    )
    gpu_numbers: tuple[int, ...] | None = option(
        None, "numbers of the GPUs that take part, on each server", default_text="all"
    )
    servers: int = option(1, "servers alike")
    gpu: str | None = option(
        None, "model of the GPUs, where the server does not say or says another; generic is one"
    )
    fitted_network: str | None = option(
        None,
        "name of a fitted network between the servers",
        default_text="the cards nearest to the GPUs",
        formerly="network",
    )
    nic_bandwidth: str | None = option(
        None, "bandwidth of each card, such as 200Gbit/s", default_text="as the server says"
    )
    bytes: tuple[str, ...] = option(("100e6",), "sizes of the buffer, such as 100e6 or 1MiB")
    collective: Literal["all_reduce", "all_gather", "reduce_scatter", "point_to_point"] = option(
        "all_reduce", "collective; a message goes from the first GPU to the second"
    )
    algorithm: Literal["as_fitted", "best", "ring", "tree", "halving", "hierarchical"] = option(
        "as_fitted", "algorithm; best is the one of least time"
    )
    figures: Path | None = option(
        None, "file of link figures", default_text="the shipped one", is_file=True
    )
    plot: Path | None = option(
        None, "PNG of time against size, with measured cells where there are any"
    )
    json: bool = option(False, "print the estimate as JSON, and nothing else")


def run(config: Config) -> None:
    """Print the times."""
    sizes = [_size(text) for text in config.bytes]
    if not sizes:
        raise UsageError("--bytes must have at least one size, got none")
    if config.plot is not None and config.plot.suffix != ".png":
        raise UsageError(f"--plot must end in .png, got {config.plot}")
    figures = (
        figures_file.shipped_link_figures()
        if config.figures is None
        else figures_file.read_link_figures(config.figures)
    )
    group = _group(config, figures)
    found = [
        device_collectives.collective_time(group, config.collective, size, config.algorithm)
        for size in sizes
    ]
    if config.plot is not None:
        figure = pictures.times_figure(config.collective, group, sizes)
        write_atomically(config.plot, paper.image_bytes(figure))
    tell(_facts(group, found) if config.json else _text(config, group, found))


def _group(config: Config, figures: "DeviceFigures") -> "device_groups.DeviceGroup":
    """GPUs that the flags name, and what joins their servers."""
    if config.servers < 1:
        raise UsageError(f"--servers must be at least 1, got {config.servers}")
    server = _server(config)
    numbers = [gpu.number for gpu in server.gpus]
    for number in config.gpu_numbers or ():
        if number not in numbers:
            raise UsageError(
                f"--gpu-numbers must be some of {comma_separated(numbers)}, got {number}"
            )
    chosen = numbers if config.gpu_numbers is None else config.gpu_numbers
    places = tuple(numbers.index(number) for number in chosen)
    return device_groups.DeviceGroup.of_server(
        server,
        figures,
        places=places,
        num_servers=config.servers,
        network=_network(config, server, places, figures) if config.servers > 1 else None,
    )


def _server(config: Config) -> Server:
    """Server of the flags, with their model and bandwidth of cards."""
    if config.machine is None:
        server = server_of(config)
    elif config.file or config.simulate is not None or config.nvml:
        raise UsageError("--machine must be alone, without --file, --simulate and --nvml")
    else:
        server = collective_table.server_of_node(config.machine)
    if config.gpu is not None:
        gpus = (replace(gpu, model=config.gpu) for gpu in server.gpus)
        server = replace(server, gpus=tuple(gpus))
    if config.nic_bandwidth is not None:
        with prefixed_errors("--nic-bandwidth ", UsageError):
            rate = parse_quantity(config.nic_bandwidth, BANDWIDTH_BYTES_PER_S)
        require_positive("estimate", "--nic-bandwidth", rate)
        nics = (replace(nic, bandwidth_bytes_per_s=rate) for nic in server.nics)
        server = replace(server, nics=tuple(nics))
    return server


def _network(
    config: Config, server: Server, places: tuple[int, ...], figures: "DeviceFigures"
) -> "NetworkConstants":
    """Fitted network of a name, or the cards of the server."""
    if config.fitted_network is not None:
        return figures.of_network(config.fitted_network)
    if config.machine is not None and config.machine in figures.networks:
        return figures.of_network(config.machine)
    try:
        return device_groups.network_of_cards(server, places, figures)
    except ValueError as error:
        raise UsageError(
            f"{error}; --fitted-network NAME or --nic-bandwidth RATE gives it"
        ) from None


def _size(text: str) -> float:
    """Read a size in bytes, with a unit or without."""
    try:
        size = float(text)
    except ValueError:
        with prefixed_errors("--bytes ", UsageError):
            size = parse_quantity(text, SIZE_BYTES)
    require_positive("estimate", "--bytes", size)
    return size


def _ring(group: "device_groups.DeviceGroup") -> list[int]:
    """Numbers of the GPUs of a server in the order of its ring."""
    server, _ = group.parts[0]
    return [server.gpus[place].number for place in group.rings[0]]


def _facts(
    group: "device_groups.DeviceGroup", found: "list[device_collectives.CollectiveTime]"
) -> dict[str, object]:
    return {
        "server": group.parts[0][0].name,
        "servers": len(group.parts),
        "gpus": group.num_ranks,
        "ring": _ring(group),
        "origins": [*group.origins, *_network_origin(group)],
        "times": [
            {
                "collective": each.collective,
                "bytes": each.payload_bytes,
                "algorithm": each.algorithm,
                "reason": each.reason,
                "time_s": each.time_s,
                "bus_bandwidth_bytes_per_s": each.bus_bandwidth_bytes_per_s,
                "times_s": dict(each.times_s),
            }
            for each in found
        ],
    }


def _network_origin(group: "device_groups.DeviceGroup") -> list[str]:
    if group.network is None:
        return []
    fitted = [name for name, own in group.figures.networks.items() if own == group.network]
    if fitted:
        return [f"network: fitted to cells of {fitted[0]} across machines"]
    return [
        "network: line rates of the nearest cards, part and step of NCCL's own reckoning, not "
        "fitted"
    ]


def _text(
    config: Config,
    group: "device_groups.DeviceGroup",
    found: "list[device_collectives.CollectiveTime]",
) -> str:
    server, places = group.parts[0]
    numbers = comma_separated([server.gpus[place].number for place in places])
    several = f" on each of {len(group.parts)} servers" if len(group.parts) > 1 else ""
    names = list(found[0].times_s)
    rows = [("bytes", "time [ms]", "bus [GB/s]", "algorithm", *(f"{n} [ms]" for n in names))]
    rows += [
        (
            f"{each.payload_bytes:.10g}",
            f"{each.time_s * 1e3:.4g}",
            f"{each.bus_bandwidth_bytes_per_s / 1e9:.4g}",
            each.algorithm,
            *(f"{each.times_s[name] * 1e3:.4g}" for name in names),
        )
        for each in found
    ]
    reasons = dict.fromkeys(f"{each.algorithm}: {each.reason}" for each in found)
    return (
        f"{config.collective} over GPUs {numbers} of {server.name}{several}\n"
        f"ring: {comma_separated(_ring(group))}\n{aligned(rows)}"
        + "".join(f"{line}\n" for line in (*reasons, *group.origins, *_network_origin(group)))
    )
