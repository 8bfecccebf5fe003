"""Chains of devices against closed forms, `des` and the enumeration of all local plans."""

from itertools import product

import numpy as np
import pytest
from local_servers import agent_of, chain_s, shapes_of

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.known_gpus import gpus_of_domains
from agents.hi_ppo.local.agreement import cases_of, settle, with_local, workload_of
from agents.hi_ppo.local.chains import Chains, DomainBorder
from agents.hi_ppo.local.device_times import DeviceTimes
from des import Placement, Plan, read_topology
from des.compiled.simulate import simulate_compiled

NO_BORDER = DomainBorder((0.0, 0.0), (0.0, 0.0))


def devices(num: int, forward_s: float, backward_s: float, **changes: object) -> DeviceTimes:
    found = DeviceTimes(
        forward_s=np.full(num, forward_s),
        backward_s=np.full(num, backward_s),
        transfer_s=np.zeros(num - 1),
        latency_s=np.zeros(num - 1),
        gradients_s=0.0,
    )
    return found._replace(**changes)


def chains_of(*menus: tuple[DeviceTimes, ...], borders: tuple[DomainBorder, ...] = ()) -> Chains:
    known = borders or (NO_BORDER,) * (len(menus) - 1)
    return Chains(menus, known, schedule="1f1b", num_microbatches=6)


def test_equal_devices_on_free_wires_match_the_closed_form():
    """Domains of 2 and 3 devices, 6 microbatches: (6 + 5 - 1) (1 + 2); then (6 + 3 - 1) (1 + 2)."""
    two, three, one = (devices(num, 1.0, 2.0) for num in (2, 3, 1))
    chains = chains_of((two,), (three, one))

    assert chains.times_s([(0, 0), (0, 1)]).tolist() == [30.0, 24.0]
    assert chains.quickest((0, 0)) == ((0, 1), 24.0)


def test_a_chain_by_hand():
    """Two stages of 1 + 1 s, 1 s on the wire and 2 s in flight, sums of gradients of 4 s.

    The first stage sends two forwards before it waits for a gradient: a round of two takes 10 s,
    from its first forward to its second backward 12 s, and the last of three ends after 32 s.
    """
    one = (devices(1, 1.0, 1.0),)
    near, far = (
        chains_of(one, one),
        chains_of(one, one, borders=(DomainBorder((1.0,) * 2, (2.0,) * 2),)),
    )
    summed = chains_of(one, (devices(1, 1.0, 1.0, gradients_s=4.0),))

    assert near.times_s([(0, 0)]).tolist() == [14.0]  # (6 + 1) 2
    assert far.times_s([(0, 0)]).tolist() == [32.0]
    assert summed.times_s([(0, 0)]).tolist() == [18.0]


@pytest.fixture(scope="module")
def uneven() -> tuple:
    topology = read_topology("four_uneven")
    plan = Plan(
        placement=Placement.contiguous([1, 3, 2, 0], [16, 7, 11, 6]), schedule="1f1b_4x"
    )  # South, Hills, Coast, North
    job = TrainingJob(model="llama2_13b", num_sequences=32)
    cases = cases_of(topology, plan, job, gpus_of_domains(topology))
    return topology, plan, job, cases, settle(agent_of(), topology, plan, cases)


def test_domains_that_share_a_pipeline_do_not_grow_longer_than_others_need(uneven):
    """One device in each of the domains of 8 GPUs: 6.83 s an iteration where each for itself took
    four and two, 7.48 s.
    """
    topology, plan, job, _, decisions = uneven
    shapes = [str(one.as_dict()["parallelism"]) for one in decisions]
    workload, bound = workload_of(job, decisions), with_local(plan, decisions, 4)

    assert shapes == ["8x1x2", "8x1x1", "4x1x3", "8x1x1"]
    assert simulate_compiled(topology, workload, bound).makespan_s == pytest.approx(6.834, abs=1e-3)


def test_no_other_shapes_of_two_domains_are_quicker(uneven):
    """All shapes of the first and the third domain, simulated as a whole."""
    topology, plan, job, cases, decisions = uneven
    workload = workload_of(job, decisions)
    shapes = [[one.parallelism] for one in decisions]
    for place in (0, 2):
        shapes[place] = shapes_of(cases[place], decisions[0].microbatch_size)
    best_s = simulate_compiled(topology, workload, with_local(plan, decisions, 4)).makespan_s
    domains = [stage.domain for stage in plan.placement.stages]
    for chosen in product(*shapes):
        of_domain = dict(zip(domains, chosen, strict=True))
        other = Plan(
            placement=plan.placement,
            schedule=plan.schedule,
            parallelism=tuple(of_domain[domain] for domain in range(4)),
        )
        found = simulate_compiled(topology, workload, other)
        assert not found.fits_memory or found.makespan_s >= best_s * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_takes_as_long_as_des_says(seed):
    """Random orders, splits and schedules; the shapes that are settled on."""
    rng = np.random.default_rng(seed)
    topology, job = read_topology("four_uneven"), TrainingJob(model="llama2_7b", num_sequences=16)
    cuts = sorted(rng.choice(np.arange(1, 32), size=2, replace=False).tolist())
    plan = Plan(
        placement=Placement.contiguous(
            rng.permutation(4)[:3].tolist(), np.diff([0, *cuts, 32]).tolist()
        ),
        schedule=("1f1b", "1f1b_2x", "1f1b_4x", "gpipe")[seed],
    )
    cases = cases_of(topology, plan, job, gpus_of_domains(topology))
    decisions = settle(agent_of(seed), topology, plan, cases)
    workload = workload_of(job, decisions)
    found = simulate_compiled(topology, workload, with_local(plan, decisions, 4))
    found_s = chain_s(topology, plan, cases, decisions)
    assert found_s == pytest.approx(found.makespan_s, rel=1e-9)
