"""Folders of programs that stand in for ASTRA-sim's, and cases for them."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

from strategies import plan, unit_workload, world

from calibration.cases.case import PlacementCase
from calibration.reference.export import PROGRAMS
from des import Parallelism, Transport

FAKE = Path(__file__).resolve().parent / "fake_astra_sim.py"
MESSAGE_BYTES = 2.0**28
LINK = (2.0**30, 0.05)
"""A message takes 0.25 s on the wire and 0.05 s more."""


def fake_program(path: Path, way: str) -> Path:
    """Make an executable that goes a way of `fake_astra_sim`."""
    words = shlex.join([sys.executable, str(FAKE), way])
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', "utf-8")
    path.chmod(0o755)
    return path


def fake_programs(folder: Path, way: str = "") -> Path:
    """Make a folder of both programs; without a way each is our own engine."""
    folder.mkdir()
    for backend, name in PROGRAMS.items():
        fake_program(folder / name, way or backend)
    return folder


def small_case(
    endpoints: str = "one_in_flight",
    *,
    schedule: str = "1f1b",
    num_microbatches: int = 1,
    passes_s: tuple[float, float] = (1.0, 2.0),
) -> PlacementCase:
    """Three stages on three domains, all joined by equal links."""
    pairs = ("AB", "BA", "AC", "CA", "BC", "CB")
    topology = replace(
        world("ABC", dict.fromkeys(pairs, LINK)), transport=Transport(endpoints=endpoints)
    )
    workload = unit_workload(
        [passes_s] * 3, num_microbatches=num_microbatches, message_bytes=MESSAGE_BYTES
    )
    return PlacementCase(
        topology=topology, workload=workload, plan=plan(0, 1, 2, schedule=schedule)
    )


def gpu_case(endpoints: str = "one_in_flight") -> PlacementCase:
    """The same with four GPUs a domain, which share layers in pairs and microbatches in two."""
    whole = small_case(endpoints, num_microbatches=4)
    domains = tuple(
        replace(
            domain,
            num_gpus=4,
            gpu_peak_flops_per_s=1e12,
            gpu_memory_bandwidth_bytes_per_s=1e12,
            intra_bandwidth_bytes_per_s=1e10,
            intra_latency_s=1e-6,
        )
        for domain in whole.topology.domains
    )
    layers = tuple(
        replace(
            layer,
            forward_flops=1e12,
            input_gradient_flops=1e12,
            weight_gradient_flops=1e12,
            num_parameters=1e8,
        )
        for layer in whole.workload.layers
    )
    return PlacementCase(
        topology=replace(whole.topology, domains=domains),
        workload=replace(whole.workload, layers=layers),
        plan=replace(whole.plan, parallelism=(Parallelism(tensor=2, data=2),) * 3),
        granularity="gpu",
    )
