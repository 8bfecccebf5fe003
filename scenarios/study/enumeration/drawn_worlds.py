"""Worlds and jobs drawn for an enumeration: two or three sites of servers, and a model."""

import numpy as np

from agents.decision.training_job import TrainingJob
from des import Topology
from des.world.files.topology_yaml import topology_of

GPU_KINDS = {"a100_40": 300, "a100_80": 300, "h100": 450, "h200": 450}
"""GPUs of the sites, with the bandwidth among those of a server. [GB/s]"""

MODELS = ("llama3_8b", "llama2_13b", "qwen3_32b", "llama3_70b")
MOST_SERVERS = 8
NAMES = ("East", "Central", "West")


def drawn_case(seed: int) -> tuple[Topology, TrainingJob]:
    """Draw a world of 1 to 8 servers of 8 GPUs a site, links of 1 to 100 Gbit/s, and a job."""
    rng = np.random.default_rng(seed)
    names = NAMES[: int(rng.integers(2, 4))]
    model = str(rng.choice(MODELS))
    domains = [_site(rng, name) for name in names]
    links = [
        {
            "source": source,
            "dest": target,
            "bandwidth": f"{10 ** rng.uniform(0, 2):.2f}Gbps",
            "latency": f"{rng.uniform(1, 40):.1f}ms",
            "one_way": True,
        }
        for source in names
        for target in names
        if source != target
    ]
    job = TrainingJob(
        model=model,
        num_sequences=int(rng.choice([128, 256, 512])),
        sequence_length=int(rng.choice([4096, 8192])),
    )
    world = {"domains": domains, "cross_domain_links": links}
    return topology_of({"topology": world, "dynamics": "steady"}), job


def _site(rng: np.random.Generator, name: str) -> dict[str, object]:
    gpu = str(rng.choice(list(GPU_KINDS)))
    return {
        "name": name,
        "num_gpus": 8 * int(rng.integers(1, MOST_SERVERS + 1)),
        "gpu": gpu,
        "layer_times": "fraction",
        "intra_bandwidth": f"{GPU_KINDS[gpu]}GB/s",
        "intra_latency": "3us",
        "nodes": {
            "gpus_per_node": 8,
            "nics_per_node": 8,
            "nic_bandwidth": "400Gbps",
            "nic_latency": "5us",
        },
    }
