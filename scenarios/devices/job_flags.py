"""Flags about a job on several servers."""

from dataclasses import dataclass
from pathlib import Path

from des.base.flags import option, required
from scenarios.devices.sources import ServerFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlags(ServerFlags):
    """Size of a job, and with ``--servers`` what is known of its servers and its training."""

    gpus: int = required("GPUs of the job")
    json: bool = option(False, "print JSON, and nothing else")
    servers: Path | None = option(
        None, "YAML file of servers with their free GPUs, for a job on several; see docs/devices.md"
    )
    gpus_per_node: int = option(8, "with --servers: most GPUs of the job on one server")
    communication_heavy: bool = option(
        True, "with --servers: few servers, close to each other; else those that the job fills best"
    )
    data_locality: tuple[str, ...] = option(
        (), "with --servers: names of servers that hold the data", default_text="none"
    )
    mix: tuple[str, ...] = option(
        ("1", "2", "4", "8"), "with --servers: next jobs as GPUs or GPUs:WEIGHT"
    )
    model: str = option("llama2_7b", "with --servers: model whose iteration is simulated")
    gpu: str | None = option(
        None, "with --servers: model of the GPUs", default_text="that of the servers"
    )
    parallelism: str | None = option(
        None,
        "with --servers: TENSORxDATAxPIPELINE of the job",
        default_text="tensor in a server, data over servers",
    )
    cards_per_server: int | None = option(
        None, "with --servers: network cards in use", default_text="those nearest to the GPUs"
    )
    card_bandwidth_bytes_per_s: float | None = option(
        None, "with --servers: bandwidth of a network card", default_text="that of the servers"
    )
