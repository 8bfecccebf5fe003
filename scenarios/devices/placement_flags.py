"""Flags that the subcommands about placements share, and how their results are shown."""

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from des.base.command import UsageError
from des.base.flags import option, required
from des.devices.server import Server
from scenarios.devices.sources import ServerFlags, server_of

UNKNOWN_MODEL = (
    "the GPUs' model is not known: times are by NCCL's figures for each token (--gpu gives it)\n"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacedServerFlags(ServerFlags):
    """Settings of a server whose GPUs jobs are placed on."""

    gpu: str | None = option(
        None, "model of the GPUs, such as a100_80, where the server does not say"
    )


def modelled(server: Server, gpu: str | None) -> Server:
    """Server whose GPUs of no known model have the given one."""
    if gpu is None or all(each.model is not None for each in server.gpus):
        return server
    gpus = (dataclasses.replace(each, model=each.model or gpu) for each in server.gpus)
    return dataclasses.replace(server, gpus=tuple(gpus))


def placed_server_of(flags: PlacedServerFlags) -> Server:
    """Return the server that the flags name; errors as those of `server_of`."""
    return modelled(server_of(flags), flags.gpu)


def note_on_times(server: Server) -> str:
    """Line about the figures of predicted times; none where they are those of the GPUs' model."""
    return "" if all(each.model is not None for each in server.gpus) else UNKNOWN_MODEL


def mix_of(texts: Sequence[str]) -> Mapping[int, float]:
    """Read a mix of jobs: ``1,2,4`` with equal weights, or ``1:0.5,8:0.5``.

    Raises
    ------
    UsageError
        If an item is neither a number of GPUs nor one with a positive weight, or comes twice.

    Examples
    --------
    >>> dict(mix_of(["1", "8:0.5"]))
    {1: 1.0, 8: 0.5}
    """
    mix: dict[int, float] = {}
    for text in texts:
        size, _, weight = text.partition(":")
        try:
            number, value = int(size), float(weight or 1.0)
        except ValueError:
            number, value = 0, 0.0
        if number < 1 or not 0 < value < math.inf or number in mix:
            raise UsageError(
                "--mix: each item must be GPUs or GPUs:WEIGHT, such as 8:0.5, with another number "
                f"of at least 1 and a positive weight; got {text!r}"
            )
        mix[number] = value
    return MappingProxyType(mix)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Text of a table: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def comma_separated(gpus: Sequence[int]) -> str:
    """Numbers of GPUs with commas, as the flags take them."""
    return ",".join(map(str, gpus))


def milliseconds(time_s: float | None) -> str:
    """Time for a table; a dash where it is not known."""
    return "-" if time_s is None else f"{1e3 * time_s:.3f}"


def tell(said: object) -> None:
    """Print a text as it is, and another value as a line of JSON."""
    text = said if isinstance(said, str) else json.dumps(said, default=dataclasses.asdict) + "\n"
    sys.stdout.write(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlags(PlacedServerFlags):
    """Size of a job; for one on several servers, these and what is known of its training."""

    gpus: int = required("GPUs of the job")
    json: bool = option(False, "print JSON, and nothing else")
    servers_file: Path | None = option(
        None, "YAML file of servers with their free GPUs, for a job on several; see docs/cluster.md"
    )
    cluster: Path | None = option(
        None, "file of a cluster whose nodes are all the given server, for a job on several"
    )
    taken: str | None = option(
        None, "with --cluster: nodes that others have taken, as n[01-64]", default_text="none"
    )
    gpus_per_node: int = option(8, "on several: most GPUs of the job on one server")
    kind: str = option(
        "communication",
        "on several, what the job does most: communication (few servers, close to each other), "
        "compute (over many racks), or mixed (those that it fills best)",
    )
    links: tuple[str, ...] = option(
        (),
        "on several: links to the switch above, LEVEL=BANDWIDTH/LATENCY, such as node=100Gbps/5us",
        default_text="not priced",
    )
    link_speed: str | None = option(
        None,
        "with --cluster: bandwidth of LinkSpeed=1 in Slurm's file, on the links below a switch",
        default_text="not priced",
    )
    data_locality: tuple[str, ...] = option(
        (), "on several: names of servers that hold the data", default_text="none"
    )
    data_size: str | None = option(
        None,
        "on several: data that every server caches first, such as 2TB, from the closest of "
        "--data-locality",
        default_text="no warm-up",
    )
    mix: tuple[str, ...] = option(
        ("1", "2", "4", "8"), "on several: next jobs as GPUs or GPUs:WEIGHT"
    )
    model: str = option("llama2_7b", "on several: model whose iteration is simulated")
    parallelism: str | None = option(
        None,
        "on several: TENSORxDATAxPIPELINE of the job",
        default_text="tensor in a server, data over servers",
    )
    cards_per_server: int | None = option(
        None, "on several: network cards in use", default_text="those nearest to the GPUs"
    )
    card_bandwidth_bytes_per_s: float | None = option(
        None, "on several: bandwidth of a network card", default_text="that of the servers"
    )
