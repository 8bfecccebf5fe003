"""Shortfall of a job that fits nowhere: the least memory that a GPU lacks under any setting."""

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import SiteChains
from agents.search.kernels.pipeline_times import MISFIT
from agents.search.settings import BoundSetting
from agents.search.workspace import Workspace
from des.plan.plan import split_evenly

_MOST_IMPROVED = 12
"""Most misfits whose layers are moved to where there is room."""


def least_shortfall(workspace: Workspace, settings: list[BoundSetting], trainer: str) -> str:
    """Sentence on the plan that lacks least, over all schedules, sizes and recomputations."""
    topology, job = workspace.topology, workspace.job
    everywhere = tuple(range(topology.num_domains))
    chains = SiteChains.of(dict.fromkeys([everywhere, *((site,) for site in everywhere)]))
    found = [one for setting in settings for one in _even_ones(workspace, setting, chains)]
    where = f"{job.model} on {topology.num_domains} sites"
    if not found:
        return f"trainer {trainer}: no degrees divide the servers and sequences of {where}"
    few = sorted(found, key=lambda one: one.estimate_s)[:_MOST_IMPROVED]
    least = min(
        (workspace.improved(one) for one in few), key=lambda one: _lack_bytes(workspace, one)
    )
    setting, names = least.setting, (topology.domains[site].name for site in least.chains[0])
    return (
        f"trainer {trainer}: no plan fits {where}; at best a GPU lacks "
        f"{_lack_bytes(workspace, least) / 1e9:.1f} GB, with tensor {setting.degrees.tensor}, data "
        f"{setting.degrees.data}, microbatches of {setting.microbatch_size}, recomputation "
        f"{setting.recomputation} and {setting.schedule} over {least.num_workers} stages on "
        f"{' + '.join(names)}"
    )


def _even_ones(workspace: Workspace, setting: BoundSetting, chains: SiteChains) -> list[Candidate]:
    """Chains whose devices all have equally many layers, fit or not."""
    found = []
    num_devices = workspace.figures(setting).num_devices
    num_layers = workspace.job.layer_count
    for chain in chains.all:
        own = tuple(site for site in chain if num_devices[site] > 0)
        counts = split_evenly(
            min(num_layers // setting.num_chunks, int(num_devices[list(own)].sum())), 1
        )
        if not own or counts[0] < 1:
            continue
        split, left = [], counts[0]
        for site in own:
            split.append(min(int(num_devices[site]), left))
            left -= split[-1]
        devices = [count for count in split if count]
        ends = np.rint(np.cumsum(devices) * num_layers / sum(devices)).astype(int)
        layers = np.diff(ends, prepend=0).tolist()
        pairs = tuple(zip(devices, layers, strict=True))
        own_s = workspace.time_s(setting, own[: len(devices)], pairs)
        found.append(
            Candidate(
                setting=setting,
                chains=(own[: len(devices)],),
                splits=(pairs,),
                estimate_s=own_s,
            )
        )
    return found


def _lack_bytes(workspace: Workspace, candidate: Candidate) -> float:
    """Memory that the fullest GPU lacks, at most: the share is of its site's GPUs. [bytes]"""
    share = candidate.estimate_s / MISFIT - 1.0
    memories = [workspace.topology.domains[site].gpu_memory_bytes for site in candidate.chains[0]]
    return share * max(memories)
