"""Sharded weights, shared sequences and experts in execution traces: equal to `des`, or refused."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, equal_world, replicas
from sparse_jobs import EXPERTS, noded_worlds, small, small_job, two_replicas, whole_plan
from strategies import topologies
from trace_cases import engine
from traces_and_des import assert_equal

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import case_digest
from calibration.reference.chakra_trace import build_traces
from des import Parallelism, Placement

ARCHITECTURE = small(3, hidden_size=1024, num_heads=8, num_key_value_heads=4, ffn_size=4096)


@st.composite
def cases(draw):
    """One device a domain, on nodes or not; a pipeline, or two replicas that have a domain each.

    So a device gathers one bucket; of several the trace fixes the order, and `des` does not.
    """
    topology = draw(topologies(min_domains=3, max_domains=3, fully=True))
    experts = draw(st.sampled_from([EXPERTS, None]))
    workload = small_job(
        replace(ARCHITECTURE, experts=experts),
        recomputation=draw(st.sampled_from(["flash", "full"])),
        sequence_length=1024,
    )
    plan = draw(two_replicas(workload, topology.num_domains))
    if plan.replicas:
        plan = replace(plan, placement=Placement(domain_of_layer=(0,) * workload.num_layers))
    return PlacementCase(topology=draw(noded_worlds(topology, plan)), workload=workload, plan=plan)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=cases())
def test_domains_that_share_copies_take_as_long(case):
    """Waits are part of the passes; gradients that are scattered there are gathered alone.

    A sum is two pauses at most in each domain, of which three may follow each other.
    """
    traces = build_traces(case)

    assert_equal(case, traces, engine(case, traces), pauses_s=6 * 0.5e-6)


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ({"data": 2, "context": 2}, "parallelism.context of domain A must be 1 .*, got 2"),
        ({"data": 2, "expert": 2}, "parallelism.expert of domain A must be 1 .*, got 2"),
        ({"data": 2, "sharding": "gradients"}, "parallelism.sharding of domain A must be none or"),
    ],
)
def test_traces_of_gpus_refuse_them_by_name(shared, message):
    workload = small_job(small(2, experts=EXPERTS))
    plan = whole_plan(workload, 2, **shared)

    with pytest.raises(ValueError, match=message.replace(", got", "; got")):
        PlacementCase(
            topology=equal_world(2, num_gpus=4), workload=workload, plan=plan, granularity="gpu"
        )


def test_digests_of_cases_without_them_stay():
    """A case with a sharded optimiser is told from one without, as before."""
    workload = small_job(small(2))
    found = {
        case_digest(
            PlacementCase(
                topology=equal_world(2, num_gpus=4),
                workload=workload,
                plan=replicas([0, 0], [1, 1], parallelism=(Parallelism(data=2, **one),) * 2),
            )
        )
        for one in ({}, {"sharding": "optimiser"}, {"sharding": "parameters"}, {"context": 2})
    }
    assert len(found) == 4
