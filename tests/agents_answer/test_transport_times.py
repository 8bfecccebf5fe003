"""Worth of NCCL's window, of early receives and of tuned hosts, beside an answer."""

from dataclasses import replace

import pytest
from bound_cases import bind_plan, bound_plan, job, site, sites

from agents.answer.bound_answer import answer_bound
from agents.answer.bound_page import bound_sections
from agents.answer.number_texts import figure
from agents.answer.transport_times import transport_dict, transport_section, transport_times
from agents.decision.training_job import TrainingJob
from agents.judge.nccl_sockets import DEFAULT_CHUNK_BYTES, nccl_step_s, site_borders
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import Transport, simulate
from des.world.hosts import hosts_named
from des.world.runtime import runtime_named

TWO = sites(site("A"), site("B"))
FAST = replace(TWO, links=tuple(replace(one, bandwidth_bytes_per_s=1e10) for one in TWO.links))


def bound_of(trainer, world=TWO, placement="0*16,1*16"):
    """A pipeline over two sites, or one in one, as a trainer runs it."""
    plan = replace(bound_plan(placement), parallelism=(), sends="overlapped")
    return bind_plan(world, job(), plan, trainer_named(trainer))


@pytest.mark.parametrize("trainer", ["megatron", "torchtitan", "deepspeed"])
def test_a_trainer_over_nccl_has_its_time_as_nccl_comes_and_as_a_launch_sets_it(trainer):
    bound = bound_of(trainer)
    found = transport_times(bound)

    slow_s = nccl_step_s(bound, site_borders(bound), DEFAULT_CHUNK_BYTES)
    assert found.nccl_s == (slow_s, bound.step_s)
    assert slow_s > bound.step_s
    assert found.runtimes_s == {}
    (line,) = transport_section(found).lines
    assert f"sockets {figure(slow_s)} s a step as it comes, {figure(bound.step_s)} s with" in line
    assert line.endswith("a formula, not measured")
    assert transport_dict(found)["nccl_s"] == [slow_s, bound.step_s]


def test_the_reference_runtime_has_a_simulated_time_for_each_place_of_receives_and_hosts():
    bound = bound_of("reference")
    found = transport_times(bound)

    assert found.nccl_s is None
    for (runtime, hosts), step_s in found.runtimes_s.items():
        transport = Transport(runtime=runtime_named(runtime), hosts=hosts_named(hosts))
        world = replace(bound.topology, transport=transport)
        assert step_s == simulate(world, bound.workload, bound.plan).makespan_s
    early_s, stock_s, untuned_s = (
        found.runtimes_s[one]
        for one in (
            ("reference", "linux_tuned"),
            ("torch_stock", "linux_tuned"),
            ("reference", "linux_default"),
        )
    )
    assert bound.step_s <= early_s < min(stock_s, untuned_s)
    (note,) = transport_section(found).notes
    assert f"save {figure(stock_s - early_s)} s" in note
    assert f"the hosts {figure(untuned_s - early_s)} s" in note
    assert len(transport_dict(found)["runtimes"]) == 4


def test_links_that_are_shared_fairly_have_no_windows_and_the_page_says_so():
    fair = replace(TWO, transport=Transport(sharing="fair"))
    found = transport_times(bound_of("reference", fair))

    assert found.runtimes_s == {}
    assert "sharing must be fifo where hosts have windows" in transport_section(found).lines[0]


def test_the_page_and_the_document_of_an_answer_over_two_sites_have_the_times():
    request = PlanRequest(
        topology=FAST,
        job=TrainingJob(model="llama2_13b", num_sequences=128),
        trainer=trainer_named("megatron"),
    )
    found = answer_bound(request, PlanObjective(), is_alone=True)

    assert found.best.kind == "pipeline"
    assert found.transport == transport_times(found.best.bound)
    assert transport_section(found.transport) in bound_sections(found)
    assert found.as_dict()["answer"]["transport"] == transport_dict(found.transport)


@pytest.mark.parametrize("trainer", ["megatron", "reference"])
def test_nothing_leaves_a_plan_in_one_site(trainer):
    assert transport_times(bound_of(trainer, placement="0*32")) is None
