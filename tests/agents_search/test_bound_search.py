"""The search: plans that trainers run, times of the simulator, invariances, and misfits."""

from dataclasses import replace

import pytest
from bound_cases import joined, site, sites
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_candidates import sites_of_servers

from agents.decision.training_job import TrainingJob
from agents.judge.step_times import step_times_s
from agents.search.bound_search import search_bound
from agents.search.chains import all_chains
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import TRAINERS, trainer_named
from des import InfeasiblePlacementError, Topology, Transport, check_memory, simulate
from des.plan.synchronisation import agree_every_step
from des.world.runtime import runtime_named

JOB = TrainingJob(model="llama2_7b", num_sequences=16, sequence_length=2048)
BOUND = [name for name, trainer in TRAINERS.items() if not trainer.is_ideal]


def searched(topology, name="megatron", objective=None, job=JOB, **changes):
    request = PlanRequest(topology=topology, job=job, trainer=trainer_named(name), **changes)
    return search_bound(request, objective)


@pytest.mark.parametrize("name", BOUND)
@settings(max_examples=examples(20))
@given(topology=sites_of_servers())
def test_plans_are_run_by_their_trainer_fit_and_take_the_time_of_the_simulator(name, topology):
    try:
        found = searched(topology, name)
    except InfeasiblePlacementError:
        return
    for row in found.rows:
        bound = row.bound
        check_plan(trainer_named(name), topology, bound.workload, bound.plan)
        check_memory(topology, bound.workload, bound.plan)
        assert step_s_of(bound) == bound.step_s == row.figures.step_s
    assert found.best.figures.loss_s == min(row.figures.loss_s for row in found.rows)


def one_by_one(*world, **settings):
    """The SimPy engine, a step after the other."""
    return simulate(*world, **settings)


def step_s_of(bound):
    """Time of a step of the simulator; of copies that seldom exchange the mean over a period."""
    if agree_every_step(bound.plan.synchronisation):
        return simulate(bound.topology, bound.workload, bound.plan).makespan_s
    (step_s,) = step_times_s(bound.topology, bound.workload, [bound.plan], simulator=one_by_one)
    return step_s


@settings(max_examples=examples(20))
@given(topology=sites_of_servers(), order=st.permutations(range(3)))
def test_the_order_of_sites_in_the_file_does_not_change_the_step(topology, order):
    kept = [topology.domains[place] for place in order if place < topology.num_domains]
    other = Topology.of(kept, topology.links)
    try:
        expected_s = searched(topology).best.figures.step_s
    except InfeasiblePlacementError:
        with pytest.raises(InfeasiblePlacementError):
            searched(other)
        return

    assert searched(other).best.figures.step_s == pytest.approx(expected_s, rel=1e-9)


def test_everything_twice_as_slow_takes_twice_as_long():
    topology = sites(site("A", 8), site("B"), site("C", 8))
    slower = Topology.of(
        [
            replace(
                domain,
                gpu_peak_flops_per_s=domain.gpu_peak_flops_per_s / 2,
                intra_bandwidth_bytes_per_s=domain.intra_bandwidth_bytes_per_s / 2,
                intra_latency_s=domain.intra_latency_s * 2,
                nodes=replace(
                    domain.nodes,
                    nic_bandwidth_bytes_per_s=domain.nodes.nic_bandwidth_bytes_per_s / 2,
                    nic_latency_s=domain.nodes.nic_latency_s * 2,
                ),
            )
            for domain in topology.domains
        ],
        [
            replace(
                link,
                bandwidth_bytes_per_s=link.bandwidth_bytes_per_s / 2,
                latency_s=link.latency_s * 2,
            )
            for link in topology.links
        ],
    )

    one, two = searched(topology).best, searched(slower).best

    assert two.figures.step_s == pytest.approx(2 * one.figures.step_s, rel=1e-9)


def test_two_equal_sites_on_fast_links_hold_a_copy_each():
    """A step of half the sequences, and a sum of 27 GB of gradients and weights at 1 TB/s.

    Each copy fills and empties its pipeline for half as many microbatches.
    """
    domains = (site("A"), site("B"))
    rows = {row.kind: row for row in searched(joined(domains, 1e12)).rows}
    alone_s = rows["single"].figures.step_s
    copies = rows["replicas"]

    assert [len(chain) for chain in copies.candidate.chains] == [1, 1]
    assert copies.bound.plan.exchange.sharded
    assert 0.5 * alone_s < copies.figures.step_s < 0.65 * alone_s


def test_slow_links_leave_one_site():
    found = searched(joined((site("A"), site("B")), 1e6))

    assert found.best.kind == "single"


def test_of_equal_plans_the_one_with_least_memory_wins():
    """One device: all schedules of the reference do the same, and recomputation only adds work."""
    found = searched(sites(site("A", 8)), "reference")

    least = min(one.figures.memory_fraction for one in found.rows)
    assert found.best.figures.memory_fraction == least


def test_a_job_that_fits_nowhere_names_the_smallest_shortfall():
    """Weights, gradients in FP32 and optimiser: 18 bytes of a parameter over 8 GPUs of 80 GB."""
    large = TrainingJob(model="llama3_70b", num_sequences=16, sequence_length=2048)
    state_gb = 18 * large.workload(1).sums_before.num_parameters[-1] / 8 / 1e9
    with pytest.raises(
        InfeasiblePlacementError,
        match=r"trainer megatron: no plan fits llama3_70b on 1 sites; at best a GPU lacks "
        r"([0-9.]+) GB, with tensor \d, data \d, microbatches of \d, recomputation full and \w+ "
        "over",
    ) as refused:
        searched(sites(site("A", 8)), job=large)

    lacks_gb = float(str(refused.value).partition("lacks ")[2].partition(" GB")[0])
    assert state_gb - 80 < lacks_gb < state_gb - 80 + 3


def test_limits_that_no_plan_keeps_name_the_best_there_is():
    found = searched(sites(site("A", 8)))
    step_s = found.best.figures.step_s

    with pytest.raises(ValueError, match=rf"at_most: must be at least {step_s:.4g} s"):
        searched(sites(site("A", 8)), objective=PlanObjective.parse("time", "1e-3 s"))


LONG = TrainingJob(model="llama3_8b", num_sequences=4, sequence_length=65536)


def test_gpus_divide_sequences_that_are_long_among_them():
    """Four sequences keep at most 4 x 8 x 1 of 64 GPUs busy; parts of them keep all."""
    topology = joined((site("A", 64),), 1e9)
    parted = searched(topology, job=LONG).best
    whole = searched(topology, "deepspeed", job=LONG).best

    assert parted.candidate.setting.degrees.context > 1
    assert whole.candidate.setting.degrees.context == 1
    assert parted.figures.step_s < 0.75 * whole.figures.step_s
    assert parted.candidate.estimate_s == pytest.approx(parted.figures.step_s, rel=1e-6)


@pytest.mark.parametrize("schedule", ["zb_auto", "greedy"])
def test_schedules_without_a_pace_can_be_asked_for_alone(schedule):
    """Every row has it, and the time of the simulator."""
    topology = joined((site("A", 8), site("B", 8)), 1e9)
    found = searched(topology, "reference", schedules=(schedule,))

    assert {row.kind for row in found.rows} == {"single", "pipeline"}
    for row in found.rows:
        assert row.bound.plan.schedule == schedule
        assert simulate(topology, row.bound.workload, row.bound.plan).makespan_s == row.bound.step_s


@pytest.mark.parametrize("name", ["reference", "torchtitan"])
def test_schedules_made_for_a_plan_are_kept_where_they_are_quicker(name):
    """All paced schedules alone are no quicker than with those made for the best plans."""
    topology = joined((site("A", 8), site("B", 24)), 4e8)
    paced = ("1f1b", "1f1b_2x", "1f1b_4x", "zb_h1", "zb_h1_2x", "zb_h1_4x", "interleaved_1f1b")
    free = {row.kind: row for row in searched(topology, name).rows}

    for row in searched(topology, name, schedules=paced).rows:
        assert free[row.kind].figures.step_s <= row.figures.step_s
    assert free["pipeline"].bound.plan.schedule in ("greedy", "zb_auto", "deep_1f1b")


def test_a_trainer_that_lacks_a_schedule_names_those_that_it_has():
    with pytest.raises(ValueError, match="must be some of 1f1b, interleaved_1f1b; got 'zb_auto'"):
        searched(sites(), schedules=("zb_auto",))


def test_a_plan_in_force_that_is_quicker_than_what_the_search_finds_is_the_answer():
    """Microbatches of eight sequences take longer; the plan in force has smaller ones."""
    topology = sites(site("A"), site("B"))
    request = PlanRequest(topology=topology, job=JOB, trainer=trainer_named("megatron"))
    best = search_bound(request).best.bound
    few = replace(request, microbatch_sizes=(8,))
    slower = search_bound(few).best.bound

    assert best.step_s < slower.step_s
    assert search_bound(few, in_force=best).best.bound == best
    assert search_bound(request, in_force=slower).best.bound == best


def test_plans_whose_workers_would_wait_for_each_other_are_no_candidates():
    """Interleaved chunks with torch's receives do; plans that stay have the simulator's time."""
    topology = replace(
        joined((site("A", 16), site("B", 16)), 1e9),
        transport=Transport(runtime=runtime_named("torch_stock")),
    )
    for row in searched(topology, "reference").rows:
        if agree_every_step(row.bound.plan.synchronisation):
            found = simulate(topology, row.bound.workload, row.bound.plan)
            assert found.makespan_s == row.bound.step_s


def test_all_chains_given_are_searched_as_those_that_the_search_knows():
    """One site, and pipelines either way round; copies of the model are left out."""
    topology = sites(site("A"), site("B", 8), site("C", 8))
    request = PlanRequest(topology=topology, job=JOB, trainer=trainer_named("megatron"))
    free = {row.kind: row.bound for row in search_bound(request).rows}
    given = {row.kind: row.bound for row in search_bound(request, among=all_chains(range(3))).rows}
    alone = search_bound(request, among=[(1,)])

    assert set(given) == {"single", "pipeline"}
    assert given["single"] == free["single"]
    assert given["pipeline"].step_s <= free["pipeline"].step_s
    assert [row.candidate.chains for row in alone.rows] == [((1,),)]
