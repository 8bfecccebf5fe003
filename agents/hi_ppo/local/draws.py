"""Random local cases: what the policy is trained on, and judged on by other seeds."""

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.options import options_of
from des import Domain, InfeasiblePlacementError
from des.devices.servers import draw_server
from des.job.model_presets import STUDIED_MODELS
from des.world.domain_load import DomainLoad

GPU_MEMORIES_BYTES = (40e9, 80e9, 141e9, 288e9)
"""As GPUs on the market have it."""

LEAST_FLOPS_PER_S, MOST_FLOPS_PER_S = 60e12, 400e12
"""Range of the FLOP/s that layers achieve on a GPU without other jobs."""

SCHEDULES = ("1f1b", "1f1b_2x", "1f1b_4x", "1f1b_8x", "gpipe")


def draw_case(rng: np.random.Generator) -> LocalCase:
    """Draw a case in which at least one option fits.

    Everything is drawn again until one does: a preset model of 4096 tokens a sequence, 32 to 256
    sequences, a run of its layers, up to 7 stages elsewhere, GPUs of any speed and memory with a
    load of up to half of their time and 40 % of their memory, and a server.
    """
    while True:
        case = _draw(rng)
        try:
            options_of(case)
        except InfeasiblePlacementError:
            continue
        return case


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
