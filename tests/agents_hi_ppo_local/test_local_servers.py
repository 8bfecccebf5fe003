"""Local plans over several servers: times of des, shared cards by hand, bindings by brute force."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from local_reference import seconds_per_sequence
from local_servers import agent_of, assert_same_times, chain_on, chain_s, servers_case

from agents.decision.training_job import TrainingJob
from agents.devices.binding_bounds import least_iteration_s
from agents.devices.binding_search import quick_binding
from agents.devices.binding_times import iteration_s, work_at
from agents.hi_ppo.known_gpus import gpus_of_domains
from agents.hi_ppo.local.agreement import bound_topology, cases_of, settle, with_local, workload_of
from agents.hi_ppo.local.bound_plans import (
    border_joint,
    exhaustive,
    in_order,
    quickly_bound,
    server_gpus_of,
    works_of,
)
from agents.hi_ppo.local.case import LocalCase, ServersCase
from agents.hi_ppo.local.draws import draw_servers_case
from agents.hi_ppo.local.features import observe
from agents.hi_ppo.local.options import LocalOption, options_of
from agents.hi_ppo.local.policy import option_scores
from agents.hi_ppo.local.rules import largest_tensor, least_estimate
from des import Corrections, Parallelism, Placement, Plan
from des.compiled.simulate import simulate_compiled
from des.devices.gpus import GpuTopology
from des.devices.presets import simulated


@pytest.mark.parametrize(
    ("kind", "num_servers", "is_wide"),
    [
        ("dgx-1-v100", 3, False),
        ("pcie-8", 2, False),
        ("pcie-4", 4, True),
        ("gb200-nvl72", 2, False),
    ],
)
def test_compiled_times_over_servers_are_those_of_the_formulas_of_des(kind, num_servers, is_wide):
    """Options of all kinds on GPUs in any order, with corrections."""
    rng = np.random.default_rng(num_servers)
    corrections = Corrections(
        compute_time_factor=1.3, intra_bandwidth_factor=0.7, intra_latency_factor=2.0
    )
    case = servers_case(
        kind, num_servers, nodes={"tensor_across_nodes": is_wide}, corrections=corrections
    )
    options, per_server = options_of(case), case.gpus.num_gpus
    rows = rng.permutation(len(options))[:40]
    assert not is_wide or any(options.rows.tensor[rows] > per_server)

    works, gpus = works_of(case, options), server_gpus_of(case)
    for row in rows:
        order = np.concatenate([rng.permutation(per_server) for _ in range(num_servers)])
        option = options.rows.options[row]
        used = np.arange(option.parallelism.num_gpus)
        bound = tuple((order[used] + used // per_server * per_server).tolist())
        found = iteration_s(work_at(works, row), gpus, order)
        expected = seconds_per_sequence(case, option, bound) * case.job.num_sequences
        assert found == pytest.approx(expected, rel=1e-12)
        assert_same_times(case, option, bound)


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_over_servers_takes_as_long_as_des_says(seed):
    """Domains of 2 to 8 servers whose GPUs are all alike, in random orders, splits and schedules.

    An odd number of sequences leaves no replicas, whose slowest sum of gradients ends a chain.
    """
    rng = np.random.default_rng(seed)
    topology = chain_on({"dgx-a100": 2, "dgx-h100": 8, "gb200-nvl72": 4})
    job = TrainingJob(model="llama2_13b", num_sequences=15)
    cuts = sorted(rng.choice(np.arange(1, 40), size=2, replace=False).tolist())
    plan = Plan(
        placement=Placement.contiguous(
            rng.permutation(3).tolist(), np.diff([0, *cuts, 40]).tolist()
        ),
        schedule=("1f1b", "1f1b_2x", "gpipe")[seed],
    )
    cases = cases_of(topology, plan, job, gpus_of_domains(topology))
    assert all(isinstance(case, LocalCase) for case in cases)
    decisions = settle(agent_of(seed), topology, plan, cases)
    workload, local = workload_of(job, decisions), with_local(plan, decisions, 3)
    bound = bound_topology(topology, plan, cases, decisions)
    found = simulate_compiled(bound, workload, local)
    assert found.fits_memory
    assert any(one.binding[-1] >= 8 for one in decisions)  # on several servers
    assert chain_s(topology, plan, cases, decisions) == pytest.approx(found.makespan_s, rel=1e-9)


def test_a_chain_over_servers_of_mixed_links_is_near_that_of_des():
    """`des` has one figure per domain: of the slowest tensor group, and of the worst border."""
    topology = chain_on({"dgx-1-v100": 4, "pcie-8": 4, "pcie-4": 2, "rtx-4090-8": 8})
    job = TrainingJob(model="llama2_70b", num_sequences=64)
    placement = Placement.contiguous(range(4), [20, 20, 10, 30])
    plan = Plan(placement=placement, schedule="1f1b")
    cases = cases_of(topology, plan, job, gpus_of_domains(topology))
    decisions = settle(agent_of(), topology, plan, cases)
    workload, local = workload_of(job, decisions), with_local(plan, decisions, 4)
    bound = bound_topology(topology, plan, cases, decisions)
    found = simulate_compiled(bound, workload, local)
    assert chain_s(topology, plan, cases, decisions) == pytest.approx(found.makespan_s, rel=0.02)


def test_a_device_over_two_servers_sums_gradients_as_des_simulates():
    """Four replicas of 4 GPUs on two servers of PCIe: two levels of wires, and shared cards."""
    case = servers_case("pcie-8", 2)
    option = LocalOption(
        parallelism=Parallelism(tensor=4, data=4), microbatch_size=4, recomputation="full"
    )
    plan = Plan(placement=Placement.contiguous([0], [40]), parallelism=(option.parallelism,))
    bound = quickly_bound(case, options_of(case), [options_of(case).rows.options.index(option)])
    topology = chain_on({"pcie-8": 2})
    decided = agent_of().decide(case)
    decided = replace(
        decided,
        parallelism=option.parallelism,
        microbatch_size=4,
        recomputation="full",
        binding=bound.binding,
    )
    world = bound_topology(topology, plan, [case], [decided])
    result = simulate_compiled(world, case.job.workload(4, "full"), plan)

    assert bound.seconds_per_sequence * 32 == pytest.approx(result.makespan_s, rel=0.01)


def test_senders_at_one_card_share_it_by_hand():
    """GPUs 0 and 1 of a DGX-1 have one card, 2 and 3 another; even is a card for each of four."""
    case = servers_case("dgx-1-v100", 2)
    near, spread = np.array([[0, 1, 2, 3]]), np.array([[0, 2, 4, 6]])

    joints = [border_joint(case, own, own + 8) for own in (near, spread)]
    assert [joint.card_share for joint in joints if joint is not None] == [0.5, 1.0]
    assert border_joint(case, near, near + 4) is None


def test_the_binding_of_a_border_spreads_over_cards():
    """Two replicas of two GPUs a device; cards of 0.1 GB/s rule, so no two senders share one."""
    case = servers_case("dgx-1-v100", 2, nodes={"nic_bandwidth_bytes_per_s": 1e8})
    options = options_of(case)
    option = LocalOption(
        parallelism=Parallelism(tensor=2, data=2, pipeline=4),
        microbatch_size=2,
        recomputation="flash",
    )
    plan = quickly_bound(case, options, [options.rows.options.index(option)])
    sending, receiving = (np.array(plan.binding[at : at + 4]) for at in (4, 8))

    assert len(set(sending // 2)) == len(set(receiving // 2)) == 4


@pytest.mark.parametrize(("kind", "seed"), [("pcie-4", 0), ("a100-pairs-4", 1), ("pcie-4", 2)])
def test_the_best_plan_on_two_servers_is_that_of_all_bindings(kind, seed):
    """All 576 orders of the GPUs of two servers, for some shapes; none is below the bound."""
    rng = np.random.default_rng(seed)
    server = simulated(kind).renumbered(rng.permutation(4).tolist())
    case = servers_case(server, 2, num_layers=9, first_layer=31)
    options, gpus = options_of(case), server_gpus_of(case)
    best_s = exhaustive(case, options).seconds_per_sequence * case.job.num_sequences
    orders = [np.array(one + two) for one, two in product(permutations(range(4)), repeat=2)]
    binding, brute = np.empty(8, dtype=np.int64), []
    rows = rng.permutation(len(options))[:12]
    works = works_of(case, options)
    for row in rows:
        work = work_at(works, row)
        brute.append(min(iteration_s(work, gpus, order) for order in orders))
        quick_s = quick_binding(work, gpus, binding)
        assert iteration_s(work, gpus, binding) == quick_s <= 1.02 * brute[-1]
        least_s = least_iteration_s(work, gpus)
        assert least_s <= brute[-1] * (1 + 1e-12)
        assert quick_binding(work, gpus, binding, 0.999 * least_s) == np.inf
    assert best_s <= min(brute) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_decisions_on_servers_fit_and_none_is_quicker_than_the_best_known(seed):
    """Each place is on the server that `des` counts it to; every GPU is used once."""
    case = draw_servers_case(np.random.default_rng([seed, 11]))
    decision, per_server = agent_of(seed).decide(case), case.gpus.num_gpus
    gpus = np.array(decision.binding)

    assert (gpus // per_server == np.arange(len(gpus)) // per_server).all()
    assert len(set(decision.binding)) == decision.parallelism.num_gpus
    found = seconds_per_sequence(case, decision.plan.option, decision.binding)
    assert decision.seconds_per_sequence == pytest.approx(found, rel=1e-12)
    best_s = exhaustive(case).seconds_per_sequence * (1 - 1e-12)
    for plan in (
        decision.plan,
        least_estimate(case, options_of(case)),
        largest_tensor(case, options_of(case)),
    ):
        assert plan.seconds_per_sequence >= best_s


def test_tensor_groups_keep_to_a_server_where_they_may_not_span_several():
    shapes = {
        is_wide: set(
            options_of(
                servers_case("pcie-4", 4, nodes={"tensor_across_nodes": is_wide})
            ).rows.tensor.tolist()
        )
        for is_wide in (False, True)
    }

    assert shapes == {False: {1, 2, 4}, True: {1, 2, 4, 8}}


def test_a_pipeline_over_eight_servers_may_have_a_device_a_gpu():
    case = servers_case("dgx-a100", 8, num_layers=40)
    options = options_of(case)

    assert options.rows.pipeline.max() == 40
    assert (options.num_layers.sum(axis=1) == 40).all()
    assert (options.rows.tensor * options.rows.data * options.rows.pipeline).max() == 64
    row = int(options.rows.pipeline.argmax())
    assert in_order(case, options, row).binding == tuple(range(40))


def test_larger_domains_are_left_to_the_rule():
    """More than 8 servers, servers of 16 GPUs, and servers of which GPUs are taken."""
    many = chain_on({"dgx-a100": 9, "dgx-2": 2, "dgx-h100": 8})
    plan = Plan(placement=Placement.contiguous([0, 1, 2], [10, 10, 20]))
    job = TrainingJob(model="llama2_13b", num_sequences=16)
    cases = cases_of(many, plan, job, gpus_of_domains(many))

    assert [isinstance(case, ServersCase) for case in cases] == [True, True, False]
    decisions = settle(agent_of(), many, plan, cases)
    assert [one.is_by_rule for one in decisions] == [True, True, False]
    case = servers_case("dgx-a100", 2)
    with pytest.raises(ValueError, match=r"servers must be at most 8 .* got 2 of 8, 7 free"):
        replace(case, gpus=replace(case.gpus, free=tuple(range(7))))


@pytest.mark.parametrize("kind", ["dgx-1-v100", "pcie-8", "pcie-4"])
def test_scores_do_not_depend_on_the_numbers_of_the_gpus_of_servers(kind):
    policy, known = agent_of().policy, simulated(kind)
    order = np.random.default_rng(1).permutation(known.num_gpus).tolist()
    seen = [
        observe(case, options_of(case))
        for case in (servers_case(server, 3) for server in (known, known.renumbered(order)))
    ]

    np.testing.assert_array_equal(*(option_scores(policy, each) for each in seen))


def test_equal_generators_draw_equal_cases_on_servers():
    first, again = (
        [draw_servers_case(np.random.default_rng([seed, 9])) for seed in range(6)] for _ in range(2)
    )

    assert first == again
    assert all(2 <= case.num_servers <= 8 and len(options_of(case)) for case in first)
    assert {case.gpus.num_gpus for case in first} == {4, 8}
    assert isinstance(first[0].gpus, GpuTopology)
