"""Copies of the model on different sites: groups of equal pipelines, and what they sum up."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import site, sites

from agents.decision.training_job import TrainingJob, given_job
from agents.search.copies import copies_of, least_copies_s, ring_exchange_s
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting, Degrees
from agents.search.workspace import Workspace
from des import NO_CORRECTIONS

JOB = TrainingJob(model="llama2_7b", num_sequences=16)
SETTING = BoundSetting(
    degrees=Degrees(tensor=8),
    microbatch_size=1,
    recomputation="flash",
    gradient_precision="fp32",
    schedule="1f1b",
    is_blocking=True,
)
TABLE = SettingTable(settings=(SETTING,))


def workspace_of(*domains, job=JOB):
    return Workspace(topology=sites(*domains), job=job, corrections=NO_CORRECTIONS)


def test_a_ring_of_copies_sums_over_its_slowest_link():
    """Three copies at 1.25 GB/s: 2/3 of twice 4 bytes of every parameter."""
    workspace = workspace_of(site("A"), site("B"), site("C"))
    parameters = SETTING.workload(JOB).sums_before.num_parameters[-1]

    found_s = ring_exchange_s(workspace, SETTING, [(0,), (1,), (2,)])

    assert found_s == pytest.approx(2 / 3 * 8 * parameters / 1.25e9)
    assert least_copies_s(workspace, TABLE)[1] == pytest.approx(0.5 * 8 * parameters / 1.25e9)


def test_copies_of_a_model_without_messages_sum_up_its_gradients_over_the_links():
    """The pipelines send nothing, which takes no time; gradients take as long as with messages."""
    workload = replace(SETTING.workload(JOB), message_bytes=0.0)
    workspace = workspace_of(site("A"), site("B"), job=given_job(workload))
    parameters = workload.sums_before.num_parameters[-1]

    (found,) = copies_of(workspace, TABLE, np.inf)

    summed_s = workload.gradient_bytes * parameters / 1.25e9
    assert ring_exchange_s(workspace, SETTING, found.chains) == pytest.approx(summed_s)
    assert summed_s < found.estimate_s < np.inf


def test_sites_that_are_too_small_alone_join():
    """Two stages a copy: A and D have them alone, B and C together."""
    workspace = workspace_of(site("A"), site("B", 8), site("C", 8))

    found = copies_of(workspace, TABLE, np.inf)

    chains = {one.num_workers: one.chains for one in found}
    assert {frozenset(chain) for chain in chains[2]} == {frozenset({0}), frozenset({1, 2})}
    assert all(len(one.chains) == one.setting.num_replicas for one in found)


def test_copies_do_equally_many_microbatches():
    """Sixteen sequences go to two copies, and not to three."""
    workspace = workspace_of(site("A"), site("B"), site("C"))

    assert {one.setting.num_replicas for one in copies_of(workspace, TABLE, np.inf)} == {2}


def test_no_copies_where_summing_up_takes_longer_than_the_limit():
    workspace = workspace_of(site("A"), site("B"))

    assert copies_of(workspace, TABLE, 0.9 * float(least_copies_s(workspace, TABLE)[1][0])) == []
