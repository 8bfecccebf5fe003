"""Sites, settings and candidates of the search of bound plans, drawn, for tests."""

from dataclasses import replace
from itertools import permutations

import search_cases
from bound_cases import NODES, site
from hypothesis import strategies as st

from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.schedule_choice import GROUP_FACTORS, INTERLEAVED
from agents.search.settings import BoundSetting, degrees_of
from agents.search.workspace import Workspace
from des import NO_CORRECTIONS, Link, Topology

RACKED = replace(
    NODES, racks=("a", "b", "a", "b"), rack_uplink_bytes_per_s=30e9, rack_latency_s=2e-4
)
PACED = ("gpipe", "1f1b", "1f1b_2x", "1f1b_3.5x", "zb_h1", "zb_h1_2x", "zb_h2")


@st.composite
def sites_of_servers(draw, max_sites=3):
    """Sites of one to four servers of 8 GPUs, in racks or not known, joined by direct links."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_sites))
    nodes = [draw(st.sampled_from([NODES, RACKED, None])) for _ in counts]
    domains = [
        replace(
            site(f"site{index}", 8 * count, nodes[index] and nodes[index].resized(count)),
            gpu_peak_flops_per_s=draw(st.sampled_from([1e14, 3e14, 1e15])),
            gpu_memory_bytes=draw(st.sampled_from([24e9, 48e9, 80e9, 192e9])),
            intra_bandwidth_bytes_per_s=draw(st.sampled_from([3e10, 4.5e11])),
        )
        for index, count in enumerate(counts)
    ]
    links = [
        Link(
            source=one.name,
            target=other.name,
            bandwidth_bytes_per_s=draw(st.floats(1e8, 1e10)),
            latency_s=draw(st.floats(0.0, 0.05)),
        )
        for one, other in permutations(domains, 2)
    ]
    return Topology.of(domains, links)


@st.composite
def candidates(draw, schedules=(*PACED, INTERLEAVED)):
    """A world, a job and a pipeline over some of its sites, on any part of their devices."""
    topology = draw(sites_of_servers())
    job = TrainingJob(
        model=draw(st.sampled_from(["llama2_7b", "llama2_13b", "llama3_70b"])),
        num_sequences=draw(st.sampled_from([8, 12, 20, 32])),
        sequence_length=2048,
    )
    schedule = draw(st.sampled_from(schedules))
    chunks = draw(st.integers(2, 4)) if schedule == INTERLEAVED else 1
    degrees = list(degrees_of(topology, job, sharding=draw(st.sampled_from(["none", "optimiser"]))))
    setting = BoundSetting(
        degrees=draw(st.sampled_from(degrees)),
        microbatch_size=1,
        recomputation=draw(st.sampled_from(["flash", "full"])),
        gradient_precision=draw(st.sampled_from(["bf16", "fp32"])),
        schedule=schedule,
        num_chunks=chunks,
        group_factor=draw(st.sampled_from(GROUP_FACTORS)) if chunks > 1 else 1.0,
        is_blocking=draw(st.booleans()),
    )
    workspace = Workspace(topology=topology, job=job, corrections=NO_CORRECTIONS)
    num_devices = workspace.figures(setting).num_devices.tolist()
    sites = [index for index, count in enumerate(num_devices) if count > 0]
    chain = tuple(draw(st.lists(st.sampled_from(sites), min_size=1, unique=True)))
    most = job.layer_count // (chunks * len(chain))
    room = [min(num_devices[index], most) for index in chain]
    least = 2 if chunks > 1 and len(chain) == 1 else 1  # chunks of one device are none
    if room[0] < least:
        return draw(candidates(schedules))
    devices = [draw(st.integers(least, count)) for count in room]
    layers, left = [chunks * count for count in devices], job.layer_count - chunks * sum(devices)
    for place in range(len(chain) - 1):
        more = draw(st.integers(0, left))
        layers[place], left = layers[place] + more, left - more
    layers[-1] += left
    split = tuple(zip(devices, layers, strict=True))
    candidate = Candidate(setting=setting, chains=(chain,), splits=(split,), estimate_s=1.0)
    return workspace, candidate


def fits(workspace, candidate):
    """Whether the simulator finds room for a candidate."""
    workload = candidate.setting.workload(workspace.job)
    return search_cases.fits(workspace.topology, workload, candidate.plan(workspace.topology))
