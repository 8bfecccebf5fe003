"""Flags about a job on several servers."""

from dataclasses import dataclass
from pathlib import Path

from des.base.flags import option, required
from scenarios.devices.placement_flags import PlacedServerFlags


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
