"""Random local cases: what the policy is trained on, and judged on by other seeds."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.case import MOST_LOCAL_SERVERS, LocalCase
from agents.hi_ppo.local.options import options_of
from des import Domain, InfeasiblePlacementError, Nodes
from des.devices.figures_file import shipped_link_figures
from des.devices.gpus import GpuTopology
from des.devices.presets import simulated
from des.devices.servers import draw_server
from des.job.model_presets import STUDIED_MODELS
from des.world.domain_load import DomainLoad

GPU_MEMORIES_BYTES = (40e9, 80e9, 141e9, 288e9)
"""As GPUs on the market have it."""

LEAST_FLOPS_PER_S, MOST_FLOPS_PER_S = 60e12, 400e12
"""Range of the FLOP/s that layers achieve on a GPU without other jobs."""

SERVER_KINDS = (
    "dgx-1-p100",
    "dgx-1-v100",
    "dgx-a100",
    "dgx-h100",
    "hgx-h100",
    "dgx-b200",
    "gb200-nvl72",
    "pcie-4",
    "pcie-8",
    "a100-pairs-4",
    "rtx-4090-8",
)
"""Kinds of servers of 4 or 8 GPUs with network cards; those of other names have the same links."""

SCHEDULES = ("1f1b", "1f1b_2x", "1f1b_4x", "1f1b_8x", "gpipe")


def draw_case(rng: np.random.Generator) -> LocalCase:
    """Draw a case in which at least one option fits.

    Everything is drawn again until one does: a preset model of 4096 tokens a sequence, 32 to 256
    sequences, a run of its layers, up to 7 stages elsewhere, GPUs of any speed and memory with a
    load of up to half of their time and 40 % of their memory, and a server.
    """
    return _fitting(rng, _draw)


def draw_servers_case(rng: np.random.Generator) -> LocalCase:
    """Draw a case on 2 to 8 equal servers in which at least one option fits.

    As `draw_case`, on servers of a kind of `SERVER_KINDS` whose GPUs have other numbers, all free.
    Cards have all, half or a quarter of their line rate, the way between servers takes 2 to 20 us,
    and tensor groups may span servers in one case of four.
    """
    return _fitting(rng, _draw_on_servers)


def _fitting(
    rng: np.random.Generator, draw: Callable[[np.random.Generator], LocalCase]
) -> LocalCase:
    """Draw until at least one option fits."""
    while True:
        case = draw(rng)
        try:
            options_of(case)
        except InfeasiblePlacementError:
            continue
        return case


def _draw_on_servers(rng: np.random.Generator) -> LocalCase:
    case = _draw(rng)
    kind = simulated(SERVER_KINDS[int(rng.integers(len(SERVER_KINDS)))])
    server = kind.renumbered(rng.permutation(kind.num_gpus).tolist())
    cards = server.near_nics
    rate = cards[0].bandwidth_bytes_per_s
    assert rate is not None
    nodes = Nodes(
        gpus_per_node=server.num_gpus,
        nics_per_node=len(cards),
        nic_bandwidth_bytes_per_s=rate / float(2 ** rng.integers(3)),
        nic_latency_s=2e-6 * 10 ** float(rng.random()),
        tensor_across_nodes=bool(rng.random() < 0.25),
        server=server,
    )
    num_gpus = int(rng.integers(2, MOST_LOCAL_SERVERS + 1)) * server.num_gpus
    return replace(
        case,
        domain=replace(case.domain, num_gpus=num_gpus, nodes=nodes),
        gpus=GpuTopology.of_server(server, figures=shipped_link_figures()),
    )


def _draw(rng: np.random.Generator) -> LocalCase:
    names = STUDIED_MODELS
    job = TrainingJob(
        model=names[int(rng.integers(len(names)))], num_sequences=int(2 ** rng.integers(5, 9))
    )
    num_others = int(rng.integers(0, 8))
    behind = int(rng.integers(0, num_others + 1))
    even = job.layer_count / (1 + num_others)
    num_layers = min(job.layer_count, max(1, round(even * float(rng.uniform(0.5, 1.5)))))
    first = 0 if behind == num_others else int(rng.integers(job.layer_count - num_layers + 1))
    domain, load = _machine(rng)
    return LocalCase(
        domain=domain,
        load=load,
        gpus=draw_server(rng),
        job=job,
        first_layer=job.layer_count - num_layers if behind == 0 else first,
        num_layers=num_layers,
        stages_before=num_others - behind,
        stages_behind=behind,
        schedule=SCHEDULES[int(rng.integers(len(SCHEDULES)))],
    )


def _machine(rng: np.random.Generator) -> tuple[Domain, DomainLoad]:
    """Eight GPUs and what others take of them; the speed is what is left."""
    load = DomainLoad(
        utilisation=float(rng.uniform(0.0, 0.5)), memory_occupancy=float(rng.uniform(0.0, 0.4))
    )
    fastest = MOST_FLOPS_PER_S / LEAST_FLOPS_PER_S
    domain = Domain(
        name="drawn",
        num_gpus=8,
        gpu_peak_flops_per_s=2.0 * LEAST_FLOPS_PER_S * fastest ** float(rng.random()),
        gpu_memory_bytes=float(rng.choice(GPU_MEMORIES_BYTES)),
        gpu_memory_bandwidth_bytes_per_s=2e12,
        attainable_fraction=0.5 * (1.0 - load.utilisation),
        intra_bandwidth_bytes_per_s=10e9,  # not used: pairs have figures of their own
        intra_latency_s=0.0,
    )
    return domain, load
