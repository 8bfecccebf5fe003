"""Tables of episodes: a case by hand, the simulator's bits, and costs of paths."""

import dataclasses

import numpy as np
import pytest
from epoch_cases import FOUR_LAYERS, FREE_PAIR, HandWorld, slowed, tables_by_hand
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import joined
from small_policies import with_memory
from strategies import corrections, plan, topologies, unit_domain, workloads, world

from agents.decision.depths import DEPTHS
from agents.decision.levels import LEVELS
from agents.judge.search_judge import Judge
from agents.judge.steady_judge import SteadyJudge
from agents.judge.step_times import step_times_s, step_wan_bytes
from agents.replanning.tables import costs_of, foreseen, join_tables, tables_of, total_s
from des import (
    NO_CORRECTIONS,
    DiLoCo,
    Plan,
    StreamingDiLoCo,
    Topology,
    Transport,
    migration_s,
    simulate,
    simulate_epoch,
)
from des.compiled.simulate import simulate_compiled
from des.plan.replacement import Replacement

WHOLE, HALVES, GPIPE = plan(0, 0, 0, 0), plan(0, 0, 1, 1), plan(0, 0, 1, 1, schedule="gpipe")


def test_tables_of_a_case_by_hand():
    """Two microbatches of 4 s + 4 s in one domain; in halves (2 + 2) s a stage, one bubble of 4 s.

    At half speed the second stage takes 4 s + 4 s: all forwards in turn end at 2 + 4 + 4 and all
    backwards at 10 + 4 + 4 + 2 s under GPipe.
    """
    epochs = (FREE_PAIR, slowed(0.5))

    tables = tables_of(HandWorld(epochs=epochs), 0, [WHOLE, HALVES, GPIPE])

    assert tables.iteration_s.tolist() == [[16.0, 12.0, 12.0], [16.0, 20.0, 20.0]]
    assert tables.base_iteration_s.tolist() == [16.0, 12.0, 12.0]
    assert tables.static == 1
    assert tables.move_s[0].tolist() == [[0.0, 5.0, 5.0], [5.0, 0.0, 1.0], [5.0, 1.0, 0.0]]
    assert tables.moved_bytes.tolist() == [[0.0, 32.0, 32.0], [32.0, 0.0, 0.0], [32.0, 0.0, 0.0]]
    assert tables.level.tolist() == [[0, 3, 3], [3, 0, 1], [3, 1, 0]]
    assert total_s(tables, [1, 0]) == pytest.approx(200 * 20 / (100 / 12 + 95 / 16))


def test_a_path_costs_what_the_simulator_says_of_its_epochs():
    """Time, utilisation over all GPUs and bytes, changes of plan included."""
    job = dataclasses.replace(FOUR_LAYERS, message_bytes=2.0)
    hand = HandWorld(epochs=(FREE_PAIR, slowed(0.5), FREE_PAIR), workload=job)
    plans, path = [WHOLE, HALVES, GPIPE], [1, 0, 2]

    costs = costs_of(tables_of(hand, 0, plans), path)

    results, last = [], None
    for topology, index in zip(hand.epochs, path, strict=True):
        results.append(
            simulate_epoch(
                topology, job, plans[index], num_iterations=10, previous=last, restart_s=1.0
            )
        )
        last = plans[index]
    changes_s = [one.migration_s for one in results]
    done = [(100.0 - one.migration_s) / one.iterations[0].makespan_s for one in results]
    assert costs.total_s == pytest.approx(300.0 * 30 / sum(done))
    assert costs.change_s == pytest.approx(sum(changes_s) / 300.0 * costs.total_s)
    useful = sum(done) * job.flops_per_iteration
    assert costs.utilisation == pytest.approx(useful / (300.0 * FREE_PAIR.peak_flops_per_s))
    num_bytes = sum(one.moved_bytes for one in results) + sum(
        count * one.iterations[0].communication_cost_bytes
        for count, one in zip(done, results, strict=True)
    )
    assert costs.bytes_per_token == pytest.approx(
        num_bytes / (sum(done) * job.tokens_per_iteration)
    )
    assert costs.moves == dict.fromkeys(LEVELS, 0) | {"order": 2}


def test_a_plan_that_does_not_fit_or_cannot_send_takes_for_ever():
    small = [unit_domain("A", memory_bytes=50.0), unit_domain("B")]
    apart = world("AB", {})
    hand = HandWorld(epochs=(FREE_PAIR, Topology.of(small, FREE_PAIR.links), apart))

    tables = tables_of(hand, 0, [WHOLE, HALVES])

    assert np.isinf(tables.iteration_s).tolist() == [[False, False], [True, False], [False, True]]
    assert np.isinf(tables.move_s[2]).tolist() == [[False, True], [True, False]]


def test_tables_refuse_plans_that_are_none_or_twice_the_same_or_useless():
    hand = HandWorld(epochs=(FREE_PAIR,))
    useless = HandWorld(epochs=(FREE_PAIR,), topology=world("AB", {}))

    with pytest.raises(ValueError, match="each once, got 2, of which 1"):
        tables_of(hand, 0, [WHOLE, WHOLE])
    with pytest.raises(ValueError, match="one or more, each once, got 0"):
        tables_of(hand, 0, [])
    with pytest.raises(ValueError, match="one that works on world by hand"):
        tables_of(useless, 0, [HALVES])


@pytest.mark.parametrize("path", [[0], [0, 2], [0, -1], [0.0, 1.0]])
def test_a_path_names_a_plan_an_epoch(path):
    tables = tables_by_hand([[1.0, 1.0]] * 2, np.zeros((2, 2)), base_s=[1.0, 2.0])

    with pytest.raises(ValueError, match="2 numbers of plans from 0 to 1"):
        total_s(tables, path)


@st.composite
def judged_cases(draw):
    """Two networks of the same domains for one job, some with relays or other transports."""
    transport = draw(
        st.sampled_from([Transport(), Transport(window_bytes=1e6), Transport(sharing="fair")])
    )
    num_domains = draw(st.integers(1, 4))
    networks = draw(
        st.lists(
            topologies(min_domains=num_domains, max_domains=num_domains), min_size=2, max_size=2
        )
    )
    networks = [dataclasses.replace(one, transport=transport) for one in networks]
    return networks, draw(workloads()), draw(corrections())


def drawn_plans(judge, seed, count=12):
    rng = np.random.default_rng(seed)
    num_layers = judge.workload.num_layers
    plans = []
    for _ in range(count):
        num_stages = int(rng.integers(1, judge.most_stages + 1))
        order = rng.permutation(judge.num_domains)[:num_stages]
        cuts = np.sort(rng.choice(num_layers - 1, num_stages - 1, replace=False) + 1)
        counts = np.diff([0, *cuts.tolist(), num_layers])
        plans.append(plan(*np.repeat(order, counts).tolist(), schedule=str(rng.choice(DEPTHS))))
    return plans


@settings(max_examples=examples(60))
@given(case=judged_cases(), seed=st.integers(0, 2**32 - 1))
def test_one_judge_for_many_networks_says_what_a_judge_of_each_says(case, seed):
    """Jobs, scores, levels and splits, to the last bit."""
    networks, workload, found = case
    steady = SteadyJudge(workload, networks[0].num_domains, corrections=found)
    plans = steady.plans_of(drawn_plans(steady, seed))

    for topology in networks:
        judge = Judge(
            topology, workload, found, schedules=DEPTHS, simulator=simulate, max_judged=None
        )
        job = steady.job_of(topology)
        for own, known in zip(job, judge.job, strict=True):
            assert np.array_equal(own, known)
        assert steady.scores(job, plans).tolist() == judge.scores(plans).tolist()
        filled = [type(plans)(*(field.copy() for field in plans)) for _ in range(2)]
        assert steady.fill(job, filled[0]).tolist() == judge.fill(filled[1]).tolist()
        assert filled[0].end_layer.tolist() == filled[1].end_layer.tolist()


@settings(max_examples=examples(30))
@given(case=judged_cases(), seed=st.integers(0, 2**32 - 1))
def test_times_are_those_of_the_simulator_to_the_last_bit(case, seed):
    networks, workload, found = case
    steady = SteadyJudge(workload, networks[0].num_domains)
    plans = list(dict.fromkeys(drawn_plans(steady, seed, 4)))
    roomy = [
        dataclasses.replace(
            one,
            domains=tuple(
                dataclasses.replace(domain, gpu_memory_bytes=1e15) for domain in one.domains
            ),
        )
        for one in networks
    ]
    hand = HandWorld(epochs=tuple(roomy), topology=roomy[0], workload=workload)

    tables = tables_of(hand, 0, plans, corrections=found)

    for epoch, topology in enumerate(roomy):
        times_s = [simulate(topology, workload, one, found).makespan_s for one in plans]
        assert tables.iteration_s[epoch].tolist() == times_s


def test_plans_come_back_as_they_were_written_down():
    job = dataclasses.replace(FOUR_LAYERS, num_microbatches=4)
    judge = SteadyJudge(job, 3)
    given_plans = drawn_plans(judge, 0)

    written = judge.plans_of(given_plans)

    assert [judge.plan(written, row) for row in range(len(given_plans))] == given_plans


def test_plans_that_are_not_one_stage_a_domain_are_simulated_one_by_one():
    back_and_forth = plan(0, 1, 0, 1)
    greedy = plan(0, 0, 1, 1, schedule="greedy")
    hand = HandWorld(epochs=(slowed(0.5),))

    tables = tables_of(hand, 0, [back_and_forth, greedy, WHOLE])

    known = [
        simulate_compiled(slowed(0.5), FOUR_LAYERS, one).makespan_s
        for one in (back_and_forth, greedy, WHOLE)
    ]
    assert tables.iteration_s.tolist() == [known]


def test_a_judge_refuses_what_it_was_not_made_for():
    judge = SteadyJudge(FOUR_LAYERS, 2)

    with pytest.raises(ValueError, match="must have 2 domains and stand still, got 3"):
        judge.job_of(joined([1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="one stage per domain of 2, 4 layers"):
        judge.plans_of([plan(0, 1, 0, 1)])
    with pytest.raises(ValueError, match="one or more static ones"):
        SteadyJudge(FOUR_LAYERS, 2, schedules=("greedy",))


def test_a_world_without_bytes_to_pay_moves_none():
    hand = HandWorld(epochs=(FREE_PAIR,), replacement=Replacement(restart_s=3.0, pays_bytes=False))

    tables = tables_of(hand, 0, [WHOLE, HALVES])

    assert tables.move_s.tolist() == [[[0.0, 3.0], [3.0, 0.0]]]
    assert not tables.moved_bytes.any()
    known_s = migration_s(
        FREE_PAIR,
        FOUR_LAYERS,
        WHOLE,
        HALVES,
        restart_s=3.0,
        pays_bytes=False,
        corrections=NO_CORRECTIONS,
    )
    assert known_s == 3.0


def test_plans_are_known_from_the_epoch_given():
    hand = HandWorld(epochs=(FREE_PAIR,) * 3)

    tables = tables_of(hand, 0, [WHOLE, HALVES], known_from=[0, 2])

    assert tables.is_known.tolist() == [[True, False], [True, False], [True, True]]
    assert tables.base_iteration_s.argmin() == 1  # two domains are quicker
    assert tables.static == 0
    assert foreseen(tables).static == tables_of(hand, 0, [WHOLE, HALVES]).static == 1
    assert foreseen(tables).is_known.all()


@pytest.mark.parametrize("known_from", [[0], [0, -1], [1, 2], [0.0, 1.0], [[0], [1]]])
def test_epochs_of_knowledge_are_whole_numbers_one_a_plan(known_from):
    hand = HandWorld(epochs=(FREE_PAIR,))

    with pytest.raises(ValueError, match="known_from must be 2 whole numbers of at least 0"):
        tables_of(hand, 0, [WHOLE, HALVES], known_from=known_from)
    with pytest.raises(ValueError, match="known_from must be 2 whole numbers of at least 0"):
        dataclasses.replace(tables_of(hand, 0, [WHOLE, HALVES]), known_from=np.array(known_from))


def test_draws_that_follow_on_one_another_know_a_plan_from_the_first_that_yields_it():
    hand = HandWorld(epochs=(FREE_PAIR,) * 3)
    never, late, early = (
        tables_of(hand, 0, [WHOLE, HALVES], known_from=[0, epoch]) for epoch in (3, 2, 0)
    )

    assert join_tables([never, late]).known_from.tolist() == [0, 5]
    assert join_tables([late, early]).known_from.tolist() == [0, 2]
    assert join_tables([never, foreseen(late)]).known_from.tolist() == [0, 3]
    assert join_tables([never, never]).known_from.tolist() == [0, 6]
    assert join_tables([foreseen(late)] * 2).known_from is None


def test_copies_of_the_model_have_the_mean_time_and_bytes_of_their_steps():
    """Without memory for them they take for ever, as any plan; nothing is simulated one by one."""
    copies = Plan(placement=WHOLE.placement, replicas=(plan(1, 1, 1, 1).placement,))
    rare = dataclasses.replace(copies, synchronisation=DiLoCo(steps_between=4))
    streaming = dataclasses.replace(copies, synchronisation=StreamingDiLoCo(steps_between=4))
    plans = [WHOLE, copies, rare, streaming]
    small = with_memory(FREE_PAIR, 0.75)
    hand = HandWorld(epochs=(FREE_PAIR, slowed(0.5), FREE_PAIR, small))

    tables = tables_of(hand, 0, plans)

    for epoch, topology in enumerate(hand.epochs[:3]):
        expected = step_times_s(topology, FOUR_LAYERS, plans)
        assert tables.iteration_s[epoch].tolist() == expected.tolist()
    assert np.isinf(tables.iteration_s[3]).all()
    assert tables.cost_bytes.tolist() == step_wan_bytes(FOUR_LAYERS, plans).tolist()
    assert [LEVELS[level] for level in tables.level[1]] == ["family", "nothing", "family", "family"]
