"""Flags of one simulated iteration."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents.trainers.table import TRAINERS
from des import DEFAULT_SCHEDULE, SCHEDULES
from des.base.flags import JsonFlag, option
from des.job.models import ATTENTION_HELP
from des.plan.parallelism import Sharding
from des.worlds.world_flags import LayerFlags, NetworkFlag
from scenarios.frame.outputs import figures_option, parquet_option

PROG = "python -m scenarios.simulate"
OTHER_JOBS_FORM = "model:placement[:priority], separated by semicolons"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFlags(LayerFlags, NetworkFlag, JsonFlag):
    """Flags of a job on a world and of a placement by hand."""

    schedule: str | None = option(
        None,
        f"one of {', '.join(SCHEDULES)}",
        default_text=f"{DEFAULT_SCHEDULE}; the quickest that the trainer runs",
    )
    replicas: str | None = option(
        None, "placements of further replicas in other domains, separated by semicolons"
    )
    shares: str | None = option(
        None, "microbatches of each replica, such as 20,12; none: as even as can be"
    )
    microbatches: int = option(32, "microbatches of an iteration")
    microbatch_size: int | None = option(
        None, "sequences of a microbatch", default_text="1; the quickest for the trainer"
    )
    corrections: Path | None = option(
        None, "factors found by calibration, a JSON file", is_file=True
    )
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PlacedFlags):
    """Flags of a simulated iteration."""

    figures: tuple[str, ...] = figures_option(())
    plan: Path | None = option(
        None,
        "file of a plan, with its world and job: of `eastwest decide --json`; of Sailor, or a "
        "command line of Megatron-LM, laid over the sites of --network; a folder of `eastwest "
        "launch`, whose files are read back",
        is_file=True,
    )
    launch: Path | None = option(None, "that folder: the same as --plan FOLDER", is_file=True)
    sites: str | None = option(
        None,
        "sites of a plan of Sailor or Megatron-LM, in order, with commas; none: all of the "
        "network, or those that the plan names",
    )
    placement: str | None = option(
        None,
        "domain, by number or name, times layers, such as 0*28,1*26,2*26, or 0*9+10+9 for the "
        "layers of each of its stages; "
        "none: even parts over all domains in order",
    )
    trainer: str | None = option(
        None, f"completes the placement to what it runs: {', '.join(TRAINERS)}; none: stays"
    )
    parallelism: str | None = option(
        None,
        "tensor x data x pipeline, such as 2x4x1, with c2 behind it for 2 GPUs that share "
        "sequences, e4 for 4 that share experts, e4t1 for whole ones, for all "
        "domains or one for each, with commas; 8x1x4v3 has 3 chunks a device in "
        "a loop, 8x1x4w2 has 2 there and back; "
        "none: the GPUs of a domain are one device",
    )
    sharding: Sharding = option(
        "none",
        "state spread over the data-parallel GPUs: optimiser (ZeRO-1), also gradients (ZeRO-2), "
        "also parameters (ZeRO-3, FSDP)",
    )
    expert_skew: float = option(
        1.0, "load of the fullest GPU of those that share experts, over the mean"
    )
    shard_optimiser: bool = option(False, "short for --sharding optimiser")
    sequence_parallel: bool = option(
        True, "split norms and dropout over the tensor-parallel GPUs, by tokens"
    )
    share_domains: bool = option(
        False,
        "replicas may pass domains of others, every second one from the last device to the first, "
        "as bidirectional schedules do",
    )
    tree: str | None = option(
        None,
        "replica, from 0, to which each but the first sends its sums of gradients, such as 0,0; "
        "none: a ring in their order",
    )
    shard_replicas: bool = option(
        False,
        "replicas share the optimiser's state: gradients are scattered, each updates its part of "
        "every layer, and new weights are gathered",
    )
    overlap_gradients: bool = option(True, "sum gradients up during the backward pass")
    gradient_bucket_mb: float | None = option(
        None, "largest bucket of gradients, in 1e6 bytes; none: all of a stage"
    )
    activation_compression: float = option(1.0, "factor by which messages between domains shrink")
    job: Path | None = option(
        None, "JSON file of a job: model, layers, microbatches and sequences", is_file=True
    )
    tokens_per_step: str | None = option(
        None,
        "tokens of an iteration in place of microbatches, such as 4M or 512Ki, rounded to whole "
        "sequences",
    )
    recomputation: str = option(
        "flash", "flash, none, selective or full: which activations are made again"
    )
    attention: str | None = option(
        None,
        ATTENTION_HELP,
        default_text="plain with recomputation none and selective",
    )
    gradient_precision: str = option(
        "bf16", "bf16 or fp32: gradients of 2 or 4 bytes, kept and sent"
    )
    seed: int | None = option(
        None,
        "draw one epoch of the moving links; none: they stand at their base figures, unless a "
        "trace is replayed",
    )
    other_jobs: str | None = option(
        None,
        f"jobs whose messages share the links: {OTHER_JOBS_FORM}; of messages that wait, those of "
        "the highest priority go first, and this job's is 0",
    )
    network_engine: Literal["des", "ns3"] = option(
        "des", "what carries messages between domains: des, or packets of ns3 (an extra)"
    )
    bound: bool = option(
        False,
        "also print how far the iteration is above a time that no plan can be below which trains "
        "the same, whatever the domains, stages, replicas and schedule",
    )
    out: Path = option(Path("runs/simulate"), "folder for the files")
