"""Trainers: their schedules, and the plans that they refuse."""

import re
from dataclasses import replace

import pytest
from bound_cases import bound_plan, job, site, sites
from hypothesis import given
from hypothesis import strategies as st

from agents.trainers.plan_checks import check_plan
from agents.trainers.table import DEFAULT_TRAINER, TRAINERS, trainer_named
from des import SCHEDULES, DiLoCo, GradientExchange, Parallelism, Placement, StreamingDiLoCo
from des.schedules.interleaved import interleaved_1f1b

MEGATRON = trainer_named("megatron")


def test_formats_of_passes_that_a_trainer_lacks_are_refused():
    with pytest.raises(ValueError, match=r"^trainer deepspeed: precision must be one of bf16; "):
        trainer_named("deepspeed").require_precision("fp8")
    trainer_named("torchtitan").require_precision("mxfp8")
    trainer_named("megatron").require_precision("nvfp4")


def test_trainers_are_found_by_name_and_the_default_is_one():
    assert trainer_named(DEFAULT_TRAINER) is MEGATRON
    with pytest.raises(
        ValueError,
        match=re.escape(
            "trainer: must be one of megatron, torchtitan, deepspeed, reference, ideal; got 'nemo'"
        ),
    ):
        trainer_named("nemo")


def test_a_schedule_that_a_trainer_lacks_is_refused_with_those_it_has():
    MEGATRON.require_schedules(["1f1b", "interleaved_1f1b", "interleaved_1f1b_1.5x"])
    for name in ("zb_auto", "1f1b_2x", "nonsense"):
        with pytest.raises(
            ValueError,
            match=f"--trainer megatron: schedules must be some of 1f1b, interleaved_1f1b; "
            f"got '{name}'",
        ):
            MEGATRON.require_schedules([name])
    with pytest.raises(ValueError, match=r"--trainer deepspeed: schedules .* of 1f1b; got 'gpipe'"):
        trainer_named("deepspeed").require_schedules(["gpipe"])
    for name in ("torchtitan", "reference", "ideal"):
        trainer_named(name).require_schedules([*SCHEDULES, "zb_h1_4x"])


def test_sends_of_plain_1f1b_wait_and_those_of_other_orders_do_not():
    for name in ("megatron", "torchtitan", "deepspeed"):
        assert trainer_named(name).sends_under("1f1b") == "blocking"
    assert MEGATRON.sends_under("interleaved_1f1b_2x") == "overlapped"
    assert trainer_named("reference").sends_under("1f1b") == "overlapped"


def test_gradients_are_in_fp32_by_default_but_for_trainers_of_no_program():
    found = {name: trainer.gradient_precision for name, trainer in TRAINERS.items()}

    assert found == dict.fromkeys(("megatron", "torchtitan", "deepspeed"), "fp32") | {
        "reference": "bf16",
        "ideal": "bf16",
    }


TWO = {"replicas": (Placement.parse("1*32"),)}

UNRUNNABLE = {
    "parallelism must say": {"parallelism": ()},
    "degrees and sharding must be equal in all domains in use; got A: tensor 8 x data 1; B: tensor "
    "4 x data 2": {
        "parallelism": tuple(map(Parallelism.parse, ("8x1x2", "4x2x2", "1x1x1"))),
    },
    "sends must be blocking under 1f1b; got 'overlapped'": {"sends": "overlapped"},
    "schedules must be some of 1f1b, interleaved_1f1b; got '1f1b_2x'": {"schedule": "1f1b_2x"},
    "every device must have one stage under 1f1b": {
        "parallelism": (Parallelism.parse("8x1x2v2"),) * 3,
    },
    "every device must have equally many stages; got 1 and 2": {
        "placement": "0*8,1*16,0*8",
    },
    "layers of the stages must be equal in all replicas": TWO
    | {
        "placement": "0*10,2*22",
        "parallelism": tuple(map(Parallelism.parse, ("8x1x1", "8x1x2", "8x1x1"))),
    },
    "synchronisation must be one of every_step; got diloco": TWO
    | {"placement": "0*32", "synchronisation": DiLoCo()},
    "tree of the exchange must be the default": TWO
    | {"placement": "0*32", "exchange": GradientExchange(tree=(0,))},
    "activation_compression must be the default": {"activation_compression": 2.0},
    "sharding in a pipeline must be one of none, optimiser; got 'parameters' in A": {
        "parallelism": (Parallelism(tensor=8, pipeline=2, sharding="parameters"),) * 3,
    },
    "tensor must divide the 32 heads of llama2_7b; got 5": {
        "parallelism": (Parallelism(tensor=5),) * 3,
    },
    "stages of several replicas must fill whole servers, or data must be 1": TWO
    | {"placement": "0*32", "parallelism": (Parallelism.parse("2x2x2"),) * 3},
}


@pytest.mark.parametrize("message", UNRUNNABLE)
def test_megatron_refuses_what_it_cannot_run_and_a_trainer_without_limits_does_not(message):
    topology, workload = sites(), job(microbatch_size=2)
    plan = bound_plan(**UNRUNNABLE[message])

    with pytest.raises(ValueError, match=re.escape(message)):
        check_plan(MEGATRON, topology, workload, plan)
    if plan.parallelism:
        check_plan(trainer_named("reference"), topology, workload, plan)


def test_what_megatron_runs_passes():
    for plan in (
        bound_plan(),
        bound_plan("0*10,1*22"),
        bound_plan("0*32", replicas=(Placement.parse("1*32"),)),
        bound_plan("0*8,1*8,0*8,1*8", schedule="interleaved_1f1b", sends="overlapped"),
    ):
        plan.check_against(sites(), job())
        check_plan(MEGATRON, sites(), job(), plan)


def test_tensor_groups_are_at_most_8_where_servers_are_not_known():
    topology = sites(site("A", 32, None), site("B", 32, None), site("C", 32, None))

    check_plan(MEGATRON, topology, job(), bound_plan(each="8x1x4"))
    with pytest.raises(ValueError, match="tensor must be at most 8 in domain A, whose servers"):
        check_plan(trainer_named("reference"), topology, job(), bound_plan(each="16x1x2"))


def test_fewer_sequences_than_data_ranks_are_refused_with_the_numbers_of_the_trainer():
    topology, plan = sites(), bound_plan(each="1x8x2")
    with pytest.raises(
        ValueError, match=r"global batch size must be at least the data-parallel size 8, .* got 4"
    ):
        check_plan(MEGATRON, topology, job(num_microbatches=4), plan)
    with pytest.raises(ValueError, match=r"whole sequences for each of 8 data ranks .* got 4"):
        check_plan(MEGATRON, topology, job(microbatch_size=4), plan)
    two = bound_plan("0*32", "1x8x2", replicas=(Placement.parse("1*32"),))
    with pytest.raises(
        ValueError,
        match=r"global batch size must be a multiple of micro-batch size x data-parallel size, 1 x "
        r"16, as .* got 24, which is shares of 2, 1",
    ):
        check_plan(MEGATRON, topology, job(num_microbatches=3, microbatch_size=8), two)


@pytest.mark.parametrize(
    ("num_microbatches", "factor", "is_run"),
    [(8, 1, True), (10, 1.5, True), (7, 1, False), (8, 1.5, False), (3, 4, False), (4, 4, True)],
)
def test_a_last_group_of_less_than_the_pipeline_is_refused(num_microbatches, factor, is_run):
    """Of four devices, so groups of 4, 6 and 16: 10 are 6 and 4, 8 are 6 and 2."""
    plan = bound_plan("0*8,1*8,0*8,1*8", schedule=f"interleaved_1f1b_{factor}x", sends="overlapped")
    workload = job(num_microbatches=num_microbatches)
    if is_run:
        check_plan(MEGATRON, sites(), workload, plan)
        return
    with pytest.raises(ValueError, match=r"last group of .* the pipeline-parallel size 4 of them"):
        check_plan(MEGATRON, sites(), workload, plan)


@given(devices=st.integers(2, 6), factor=st.sampled_from((1.0, 1.5, 2.0)), count=st.integers(1, 30))
def test_groups_that_megatron_runs_are_whole_in_our_orders(devices, factor, count):
    """No microbatch is left out of the order of the next multiple: it is the order of this one."""
    size = round(factor * devices)
    if 0 < count % size < devices:
        return
    orders = interleaved_1f1b(devices, 2, count, size)

    assert [len(order) for order in orders] == [4 * count] * devices


def test_deepspeed_divides_layers_evenly_with_embedding_and_head_as_layers_or_without():
    """Of 31 layers 33 with both ends: three stages of 11, of which two have an end each."""
    deepspeed, topology = trainer_named("deepspeed"), sites()
    check_plan(deepspeed, topology, job(), bound_plan("0*16,1*16", "8x1x1"))
    check_plan(deepspeed, topology, job(num_layers=31), bound_plan("0*10,1*11,2*10", "8x1x1"))
    with pytest.raises(ValueError, match="layers must be divided evenly over the stages, with"):
        check_plan(deepspeed, topology, job(), bound_plan("0*10,1*22", "8x1x1"))


def test_outer_exchanges_of_torchtitan_are_launches_of_their_own_in_8_bits_or_whole_values():
    titan, topology = trainer_named("torchtitan"), sites()
    plan = bound_plan(
        "0*32",
        replicas=(Placement.parse("1*32"),),
        parallelism=tuple(map(Parallelism.parse, ("8x1x2", "4x2x2", "1x1x1"))),
        synchronisation=StreamingDiLoCo(bits_per_value=8.0),
    )
    workload = job(microbatch_size=2)

    check_plan(titan, topology, workload, plan)
    with pytest.raises(ValueError, match="bits_per_value of diloco must be one of 8, 16, 32; got"):
        check_plan(
            titan, topology, workload, replace(plan, synchronisation=DiLoCo(bits_per_value=4.0))
        )
    with pytest.raises(ValueError, match="gradient_precision must be one of fp32; got 'bf16'"):
        check_plan(titan, topology, job(microbatch_size=2, gradient_precision="bf16"), plan)


def test_the_ideal_trainer_runs_plans_that_say_nothing_of_gpus():
    ideal = trainer_named("ideal")
    check_plan(ideal, sites(), job(), bound_plan(parallelism=(), schedule="zb_auto"))
    with pytest.raises(ValueError, match="trainer ideal: parallelism must be left out"):
        check_plan(ideal, sites(), job(), bound_plan())


def test_deepspeed_does_not_divide_sequences_in_a_pipeline():
    plan = bound_plan("0*16,1*16", "4x1x2c2")
    check_plan(trainer_named("megatron"), sites(), job(), plan)
    with pytest.raises(ValueError, match="trainer deepspeed: context must be 1, as a pipeline"):
        check_plan(trainer_named("deepspeed"), sites(), job(), plan)
