"""Runs of the ASTRA-sim engine to measure: pipelines and collectives, written as its files."""

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from chakra.schema.protobuf.et_def_pb2 import (
    ALL_GATHER,
    ALL_REDUCE,
    CollectiveCommType,
    Node,
)

from astra_sim import RunResult, simulate
from bench.execution_traces import collective, compute, receive, send, write_traces

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """1F1B over stages of one or more GPUs; with an all-reduce in every stage after each pass.

    GPU g of a stage talks to GPU g of the next. A pass waits for the one before it on its GPU and
    for its message; backward passes last twice as long.
    """

    num_stages: int = 8
    num_microbatches: int = 32
    num_gpus_per_stage: int = 1
    forward_us: int = 3000
    message_bytes: int = 2**23
    all_reduce_bytes: int | None = None

    @property
    def num_ranks(self) -> int:
        """GPUs of all stages, stage by stage."""
        return self.num_stages * self.num_gpus_per_stage

    def nodes(self, rank: int) -> list[Node]:
        """Trace of a GPU."""
        stage, nodes = rank // self.num_gpus_per_stage, list[Node]()
        last: tuple[int, ...] = ()
        for is_forward, microbatch in self._passes(stage):
            tag = 2 * microbatch + (not is_forward)
            forth, back = rank + self.num_gpus_per_stage, rank - self.num_gpus_per_stage
            source, target = (back, forth) if is_forward else (forth, back)
            if 0 <= source < self.num_ranks:
                nodes.append(receive(len(nodes), source, self.message_bytes, tag))
                last = (*last, nodes[-1].id)
            nodes.append(compute(len(nodes), self.forward_us * (2 - is_forward), last))
            if self.all_reduce_bytes is not None:
                before = (nodes[-1].id,)
                size, group = self.all_reduce_bytes, stage + 1
                nodes.append(collective(len(nodes), ALL_REDUCE, size, before, group=group))
            last = (nodes[-1].id,)
            if 0 <= target < self.num_ranks:
                nodes.append(send(len(nodes), target, self.message_bytes, tag, last))
        return nodes

    def groups(self) -> dict[int, list[int]]:
        """One of every stage's GPUs, if they reduce; numbered from 1."""
        if self.all_reduce_bytes is None:
            return {}
        count = self.num_gpus_per_stage
        return {
            stage + 1: list(range(stage * count, (stage + 1) * count))
            for stage in range(self.num_stages)
        }

    def _passes(self, stage: int) -> Iterator[tuple[bool, int]]:
        ahead = min(self.num_stages - stage, self.num_microbatches)
        for microbatch in range(ahead):
            yield True, microbatch
        for microbatch in range(self.num_microbatches):
            yield False, microbatch
            if microbatch + ahead < self.num_microbatches:
                yield True, microbatch + ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A workload, its network and how long the original took for it, if that is known."""

    name: str
    ranks: Callable[[], Sequence[Sequence[Node]]]
    network: Mapping[str, Sequence[Any]]
    backend: Literal["unaware", "aware"] = "unaware"
    algorithm: str = "ring"
    num_splits: int = 4
    groups: Mapping[int, Sequence[int]] | None = None
    original_s: float | None = None

    @property
    def num_npus(self) -> int:
        """NPUs of the network."""
        return math.prod(self.network["npus_count"])

    def write(self, folder: Path) -> None:
        """Write traces and configuration files."""
        names = [self.algorithm] * len(self.network["topology"])
        system = {f"{kind}-implementation": names for kind in COLLECTIVES} | {
            "endpoint-delay": 10,
            "active-chunks-per-dimension": 1,
            "preferred-dataset-splits": self.num_splits,
            "collective-optimization": "localBWAware",
            "local-mem-bw": 1600,
        }
        memory = {"memory-type": "NO_MEMORY_EXPANSION"}
        contents = {"system": system, "remote_memory": memory, "groups": self.groups or {}}
        for name, content in contents.items():
            (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
        (folder / "network.yml").write_text(yaml.safe_dump(dict(self.network)), "utf-8")
        write_traces(folder, self.ranks())

    def read_and_simulate(self, folder: Path) -> RunResult:
        """Do what the command does, without printing."""
        return simulate(
            folder / "trace",
            folder / "system.json",
            folder / "network.yml",
            memory=folder / "remote_memory.json",
            groups=folder / "groups.json",
            backend=self.backend,
        )


def dimensions(*dimensions: tuple[str, int, float, float]) -> dict[str, list[Any]]:
    """Content of a network's file: topology, NPUs, GB/s and nanoseconds of each dimension."""
    keys = ("topology", "npus_count", "bandwidth", "latency")
    return {
        key: list(values) for key, values in zip(keys, zip(*dimensions, strict=True), strict=True)
    }


def pipeline(num_microbatches: int = 32, original_s: float | None = None) -> Run:
    """Eight stages over wide-area links."""
    stages = Pipeline(num_microbatches=num_microbatches)
    return Run(
        name=f"1F1B, 8 stages, {num_microbatches} microbatches",
        ranks=lambda: [stages.nodes(rank) for rank in range(stages.num_ranks)],
        network=dimensions(("FullyConnected", 8, 0.625, 40e6)),
        backend="aware",
        original_s=original_s,
    )


def all_reduce(algorithm: str, num_npus: int = 64, original_s: float | None = None) -> Run:
    """One all-reduce of a GiB."""
    return Run(
        name=f"1 GiB {algorithm} all-reduce, {num_npus} NPUs",
        ranks=lambda: [[collective(0, ALL_REDUCE, 2**30)]] * num_npus,
        network=dimensions(("Ring", num_npus, 50.0, 500.0)),
        algorithm=algorithm,
        original_s=original_s,
    )


def apart(run: Run, name: str, step_us: int = 1, kind: CollectiveCommType = ALL_REDUCE) -> Run:
    """A collective with every NPU starting some time after the one before it, or before it."""
    first_us = 1 - min(0, step_us * (run.num_npus - 1))
    return _started(run, name, [first_us + step_us * rank for rank in range(run.num_npus)], kind)


def at_random(run: Run, name: str, within_us: int, kind: CollectiveCommType = ALL_REDUCE) -> Run:
    """A collective with starts that are drawn."""
    rng = random.Random(1)
    return _started(run, name, [1 + rng.randrange(within_us) for _ in range(run.num_npus)], kind)


def one_late(run: Run, name: str, late_us: int) -> Run:
    """The all-reduce with one NPU that starts later than the others."""
    return _started(run, name, [1 + late_us * (rank == 100) for rank in range(run.num_npus)])


def _started(
    run: Run, name: str, starts_us: Sequence[int], kind: CollectiveCommType = ALL_REDUCE
) -> Run:
    num_bytes = (
        2**30 // run.num_npus if kind == ALL_GATHER else 2**30
    )  # messages of all kinds alike

    def ranks() -> list[list[Node]]:
        starts = [compute(1, start_us) for start_us in starts_us]
        return [[start, collective(2, kind, num_bytes, (1,))] for start in starts]

    return replace(run, name=name, ranks=ranks)


def domains(num_microbatches: int, num_splits: int, original_s: float | None = None) -> Run:
    """Eight domains of eight NPUs: tensor parallel within, a pipeline across."""
    stages = Pipeline(
        num_microbatches=num_microbatches,
        num_gpus_per_stage=8,
        forward_us=2000,
        message_bytes=2**22,
        all_reduce_bytes=2**20,
    )
    return Run(
        name=f"1F1B, 8 domains of 8 NPUs, {num_microbatches} microbatches, splits {num_splits}",
        ranks=lambda: [stages.nodes(rank) for rank in range(stages.num_ranks)],
        network=dimensions(("Switch", 8, 50.0, 500.0), ("Switch", 8, 0.25, 80e6)),
        num_splits=num_splits,
        groups=stages.groups(),
        original_s=original_s,
    )
