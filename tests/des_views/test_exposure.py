"""Exposed communication: by hand, on free links, and within its bounds."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cases, corrections, free_world, plan, unit_workload, world

from des import NO_CORRECTIONS, Corrections, Placement, Plan, read_topology, simulate
from des.job.models import build_workload
from des.plan.synchronisation import EVERY_STEP
from des.views.exposure import exposed_communication_s


def exposed_s(topology, workload, chosen, factors=NO_CORRECTIONS):
    result = simulate(topology, workload, chosen, factors)
    return exposed_communication_s(result, topology, workload, chosen, factors)


def test_one_microbatch_waits_for_both_messages():
    """Forward and back: 8 bytes over 4 bytes/s and 0.5 s of latency, then over 2 and 0.25."""
    topology = world("AB", {"AB": (4.0, 0.5), "BA": (2.0, 0.25)})
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=1, message_bytes=8.0)

    assert exposed_s(topology, workload, plan(0, 1)) == (2.0 + 0.5) + (4.0 + 0.25)


def test_an_overhead_is_communication_too():
    topology = free_world(2)
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=1)

    assert exposed_s(topology, workload, plan(0, 1), Corrections(message_overhead_s=0.25)) == 0.5


def test_messages_that_computing_hides_do_not_count():
    """GPipe, 4 microbatches, forwards of 1 s on A and 4 s on B; a message takes 0.5 s.

    B waits 0.5 s for the first activation only: the others arrive while it computes. Backwards of
    4 s on B and 1 s on A: A waits 0.5 s for the last gradient. Eight messages, 1 s exposed.
    """
    topology = world("AB", {"AB": (16.0, 0.25), "BA": (16.0, 0.25)})
    workload = unit_workload([(1, 1), (4, 4)], num_microbatches=4, message_bytes=4.0)
    chosen = plan(0, 1, schedule="gpipe")

    assert simulate(topology, workload, chosen).makespan_s == 35.0
    assert exposed_s(topology, workload, chosen) == 1.0


def test_an_exchange_of_gradients_is_communication_too():
    """Two replicas of 3 parameters of 2 bytes: two ring steps of 3 bytes at 4 bytes/s and 0.5 s."""
    topology = world("AB", {"AB": (4.0, 0.5), "BA": (4.0, 0.5)})
    (layer,) = unit_workload([(1, 2)], num_microbatches=2).layers
    workload = dataclasses.replace(
        unit_workload([(1, 2)], num_microbatches=2),
        layers=(dataclasses.replace(layer, num_parameters=3.0),),
    )
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,)), replicas=(Placement(domain_of_layer=(1,)),)
    )

    assert EVERY_STEP.bits_per_value == 16
    assert exposed_s(topology, workload, chosen) == 2 * (0.75 + 0.5)


@settings(max_examples=examples(30), deadline=None)
@given(num_stages=st.integers(1, 5), num_microbatches=st.integers(1, 8))
def test_free_links_expose_nothing(num_stages, num_microbatches):
    workload = unit_workload(
        [(1, 2)] * num_stages, num_microbatches=num_microbatches, message_bytes=1e6
    )

    assert exposed_s(free_world(num_stages), workload, plan(*range(num_stages))) == 0.0


def test_one_domain_exposes_nothing():
    topology = read_topology("east_central_west")
    workload = build_workload("llama2_7b", num_microbatches=4)

    assert exposed_s(topology, workload, Plan(placement=Placement.parse("2*32"))) == 0.0


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(single_visit=True), factors=corrections(), seed=st.integers(0, 2**32))
def test_exposure_is_never_negative_where_domains_have_one_stage(case, factors, seed):
    topology, workload, chosen = case
    drawn = topology.draw_epoch(np.random.default_rng(seed))
    makespan_s = simulate(drawn, workload, chosen, factors).makespan_s

    assert exposed_s(drawn, workload, chosen, factors) >= -1e-12 * makespan_s


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(single_visit=True, fully=True), factors=corrections())
def test_exposure_is_at_most_what_all_messages_take(case, factors):
    """Any chain of passes and messages holds each message once; its passes are there without."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, factors)

    total_s = sum(move.arrival_s - move.start_s for move in result.transfers)
    exposed = exposed_communication_s(result, topology, workload, chosen, factors)
    assert exposed <= total_s + 1e-9 * result.makespan_s


@settings(max_examples=examples(50), deadline=None)
@given(case=cases(single_visit=True), factor=st.sampled_from([2.0, 4.0]))
def test_slower_links_expose_more(case, factor):
    topology, workload, chosen = case
    slower = topology.scaled(
        np.full(len(topology.links), 1 / factor), np.full(len(topology.links), factor)
    )

    quick_s, slow_s = (exposed_s(one, workload, chosen) for one in (topology, slower))
    assert slow_s >= quick_s - 1e-9 * abs(quick_s)


def test_a_slow_clock_scales_all():
    """Twice the work, latency and bytes: twice the exposed time."""
    topology = world("AB", {"AB": (4.0, 0.5), "BA": (2.0, 0.25)})
    workload = unit_workload([(1, 2), (3, 1)], num_microbatches=5, message_bytes=8.0)
    twice = unit_workload([(2, 4), (6, 2)], num_microbatches=5, message_bytes=16.0)
    ones = np.ones(2)

    once_s = exposed_s(topology, workload, plan(0, 1))
    assert once_s > 0
    assert exposed_s(topology.scaled(ones, 2 * ones), twice, plan(0, 1)) == 2 * once_s


def test_prices_do_not_change_the_time():
    topology = world("AB", {"AB": (4.0, 0.5), "BA": (2.0, 0.25)})
    priced = dataclasses.replace(
        topology,
        links=tuple(dataclasses.replace(link, price_usd_per_gb=0.1) for link in topology.links),
    )
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=3, message_bytes=8.0)

    assert exposed_s(priced, workload, plan(0, 1)) == exposed_s(topology, workload, plan(0, 1))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_on_the_shipped_world_it_is_part_of_the_idle_time(schedule):
    topology = read_topology("east_central_west")
    workload = build_workload("llama2_70b", num_microbatches=8)
    chosen = Plan(placement=Placement.even(3, 80), schedule=schedule)
    result = simulate(topology, workload, chosen)

    exposed = exposed_communication_s(result, topology, workload, chosen)
    assert 0 < exposed < min(stage.idle_s for stage in result.stages)
