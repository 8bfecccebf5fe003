"""Bounds of chains: no split is below them, and what has too little time is told."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import NODES, site, sites
from examples import examples
from hypothesis import assume, given, settings
from search_candidates import candidates, fits

from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.chains import SiteChains
from agents.search.settings import BoundSetting, Degrees
from agents.search.workspace import Workspace
from des import NO_CORRECTIONS, simulate


def step_s(workspace, candidate):
    """Time of a step by the simulator."""
    workload = candidate.setting.workload(workspace.job)
    return simulate(workspace.topology, workload, candidate.plan(workspace.topology)).makespan_s


@settings(max_examples=examples(150))
@given(drawn=candidates())
def test_no_chain_is_said_to_have_no_time_for_what_one_of_its_splits_does(drawn):
    """Whatever the split, its time is enough for all devices of its sites together."""
    workspace, candidate = drawn
    assume(fits(workspace, candidate))

    assert workspace.may_take_less(candidate, step_s(workspace, candidate))


@settings(max_examples=examples(150))
@given(drawn=candidates(schedules=("interleaved_1f1b",)))
def test_no_split_of_several_chunks_takes_less_than_its_messages(drawn):
    workspace, candidate = drawn
    assume(fits(workspace, candidate))

    bounds_s, _ = workspace.least_s(candidate.setting, SiteChains.of(candidate.chains))

    assert bounds_s[0, 1] <= step_s(workspace, candidate)


def interleaved(num_sites, chunks, messages_s):
    """Sites of one server each on one another's links, on which a message takes a time."""
    setting = BoundSetting(
        degrees=Degrees(tensor=8),
        microbatch_size=1,
        recomputation="flash",
        gradient_precision="fp32",
        schedule="interleaved_1f1b",
        num_chunks=chunks,
    )
    job = TrainingJob(model="llama2_7b", num_sequences=33)
    world = sites(*(site(name, 8, NODES.resized(1)) for name in "ABC"[:num_sites]))
    factor = setting.workload(job).message_bytes / messages_s / 1.25e9
    ones = np.ones(len(world.links))
    topology = world.scaled(factor * ones, ones)
    return Workspace(topology=topology, job=job, corrections=NO_CORRECTIONS), setting


@pytest.mark.parametrize(("num_sites", "messages"), [(2, 5), (3, 3)])
def test_messages_of_chunks_also_go_from_the_end_of_a_chain_back_to_its_start(num_sites, messages):
    """Of 3 chunks, 3 go over each link of a chain, and 2 back; with two sites on the same one.

    33 microbatches, messages of 2 s: 32 times 5 or 3 messages.
    """
    workspace, setting = interleaved(num_sites, 3, 2.0)

    bounds_s, _ = workspace.least_s(setting, SiteChains.of([tuple(range(num_sites))]))

    assert bounds_s[0, 1] == pytest.approx(32 * messages * 2.0)


def test_one_device_has_time_for_its_layers_from_the_time_that_they_take():
    """A site of one stage without links: 33 microbatches one after the other.

    The last layer has more to do than the others, of which there might be 32.
    """
    workspace, setting = interleaved(1, 1, 1.0)
    alone = replace(setting, schedule="1f1b")
    own = Candidate(setting=alone, chains=((0,),), splits=(((1, 32),),), estimate_s=1.0)
    sums_s = workspace.figures(alone).passes_s[0, :2].sum(axis=0)
    work_s, each_s = 33 * sums_s[-1], 33 * np.diff(sums_s)

    assert workspace.may_take_less(own, work_s)
    assert workspace.may_take_less(own, 1.001 * 32 * each_s.min())
    assert not workspace.may_take_less(own, 0.999 * 32 * each_s.min())
