"""An iteration by hand, and iterations that the recurrence does not foresee."""

import dataclasses

import pytest
from foreseen_iterations import simulate_foreseeable
from sending import with_transport
from strategies import plan, unit_workload, world

from des import Parallelism
from des.compiled.eligibility import is_foreseeable


def test_messages_take_the_wire_and_fly_by_hand():
    """4 bytes from 1 s on at 1 byte/s, then 1 s of flight: 6 s.

    B then computes for 3 s, and its 4 bytes take 2 s and fly for 3 s: A continues at 14 s.
    """
    topology = world("AB", {"AB": (1.0, 1.0), "BA": (2.0, 3.0)})
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1, message_bytes=4.0)

    found = simulate_foreseeable(topology, workload, plan(0, 1))
    assert found.transfers.tolist() == [[[1.0, 5.0, 6.0]], [[9.0, 11.0, 14.0]]]
    assert found.spans.tolist() == [[0.0, 1.0], [14.0, 16.0], [6.0, 7.0], [7.0, 9.0]]
    assert found.makespan_s == 16.0
    assert found.busy_s.tolist() == [3.0, 3.0]
    assert found.wire_busy_s.tolist() == [4.0, 2.0]


FORESEEABLE = (
    world("ABC", dict.fromkeys(("AB", "BA", "BC", "CB", "AC"), (1.0, 1.0))),
    unit_workload([(1, 2)] * 4, num_microbatches=2, message_bytes=1.0),
    plan(0, 1, 1, 2),
)


def with_gpus(topology):
    """Four GPUs in each domain."""
    domains = tuple(dataclasses.replace(domain, num_gpus=4) for domain in topology.domains)
    return dataclasses.replace(topology, domains=domains)


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        ({"sharing": "fair"}, {}),
        ({"sharing": "none"}, {}),
        ({"endpoints": "one_in_flight"}, {}),
        ({"endpoints": "blocking"}, {}),
        ({"half_duplex": True}, {}),
        ({}, {"schedule": "greedy"}),
        ({}, {"placement": plan(0, 1, 0, 2).placement}),  # a device has two stages
        ({}, {"placement": plan(0, 0, 2, 2).placement}),  # no direct link back
        ({}, {"placement": plan(0, 0, 1, 1).placement, "replicas": (plan(2, 2, 2, 2).placement,)}),
        ({}, {"parallelism": (Parallelism(data=2),) * 3}),  # sums up gradients
    ],
)
def test_anything_that_could_change_an_order_is_noticed(rules, fields):
    topology, _, chosen = FORESEEABLE
    assert is_foreseeable(topology, chosen)
    assert is_foreseeable(
        with_gpus(topology),
        dataclasses.replace(chosen, parallelism=(Parallelism(tensor=2),) * 3),
    )

    topology = with_gpus(with_transport(topology, **rules))
    assert not is_foreseeable(topology, dataclasses.replace(chosen, **fields))
