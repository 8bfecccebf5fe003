"""Train a small Llama as one rank of the reference runtime, as launch files say."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import distributed as dist

from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import option, parse, required
from des.base.text_files import read_text
from scenarios.iteration.reference_operations import read_operations
from scenarios.iteration.runtime_job import OPERATIONS, RUNTIME, rank_of_stages, read_runtime_job
from scenarios.rehearse.bucket_exchange import RunScale
from scenarios.rehearse.outer_bits import ALLOWED_BITS
from scenarios.rehearse.rank_runtime import RankRuntime
from scenarios.rehearse.receive_places import BACKENDS, place_receives

PROG = "python -m scenarios.rehearse.worker"
_EXAMPLES = f"""\
examples:
  python -m scenarios.rehearse.worker launch --rank 0 --store tcp://east-0:29500
      rank 0 of a launch; launch.sh of the folder starts all of a host
  python -m scenarios.rehearse.worker launch --rank 1 --store tcp://east-0:29500 --steps 100
      more steps; the same flags at all ranks

A line of JSON a step: loss (of the last stage), passes with start and end, end.

exit codes: 0 done; 2 a flag or a file is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a rank."""

    folder: Path = required("folder of launch files", is_positional=True)
    rank: int = required("rank of this process")
    store: str = required("where ranks meet: tcp://HOST:PORT of rank 0, or file:///PATH")
    steps: int = option(10, "steps of the training")
    receives: str = option("first", "first: post all receives of a step first; stock: as torch")
    connections: int = option(2, "connections of each pair of ranks: 1, or an even number")
    backend: str = option(BACKENDS[0], f"one of {', '.join(BACKENDS)}")
    every: int = option(0, "steps between exchanges of replicas", default_text="the plan's")
    layers: int = option(0, "most layers of a stage; of more, the first", default_text="all")
    passes: str = option("computed", "computed, or slept: as long as the plan says")
    scale: float = option(1.0, "factor on slept times")
    byte_scale: float = option(0.0, "factor on the plan's bytes; 0: as small as the model's")
    is_started: bool = option(False, "whether stdin says when each step starts")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a rank and return its exit code."""
    code = exit_code_of(lambda: _run(argv))
    sys.stdout.flush()
    return code


def _run(argv: Sequence[str] | None) -> None:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    torch.set_num_threads(1)
    if config.receives not in OPERATIONS:
        raise ValueError(f"receives must be one of {', '.join(OPERATIONS)}; got {config.receives}")
    name = OPERATIONS["first" if config.receives == "first" else "stock"]
    files = {one: read_text(config.folder / one, "launch ") for one in (RUNTIME, name)}
    job, all_operations = read_runtime_job(files[RUNTIME]), read_operations(files[name], name)
    if job.bits_per_value not in ALLOWED_BITS:
        allowed = ", ".join(f"{bits:g}" for bits in ALLOWED_BITS)
        raise ValueError(f"{RUNTIME}: bits_per_value must be one of {allowed}")
    num_ranks = len(job.stages_of_rank)
    if not 0 <= config.rank < num_ranks:
        raise ValueError(f"rank must be below the {num_ranks} of {RUNTIME}, got {config.rank}")
    operations = place_receives(
        all_operations[config.rank],
        rank_of_stages(job),
        backend=config.backend,
        num_connections=config.connections,
    )
    device = torch.device("cpu")
    if config.backend == "nccl":
        device = torch.device("cuda", config.rank % max(1, torch.cuda.device_count()))
        torch.cuda.set_device(device)
    dist.init_process_group(
        config.backend, init_method=config.store, rank=config.rank, world_size=num_ranks
    )
    runtime = RankRuntime(
        job,
        operations,
        scale=RunScale(time=config.scale, num_bytes=config.byte_scale),
        is_slept=config.passes == "slept",
        num_connections=config.connections,
        period=config.every or job.steps_between,
        most_layers=config.layers or max(one.num_layers for one in job.stages),
        device=device,
    )
    _train(config, runtime)
    dist.barrier()
    dist.destroy_process_group()


def _train(config: Config, runtime: RankRuntime) -> None:
    """Do all steps, each from a common start, and say what was done."""
    _say({"ready": config.rank})
    for step in range(config.steps):
        if config.is_started:
            start_s = float(sys.stdin.readline())
        else:
            dist.barrier()
            start_s = time.monotonic()
        _say({"step": step, **asdict(runtime.run_step(step, start_s))})
    digest = sum(float(one.detach().double().sum()) for one in runtime.parameters())
    _say({"parameters": digest})


def _say(content: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
