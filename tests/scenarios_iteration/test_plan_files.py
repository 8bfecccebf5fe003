"""Plans from files: complete ones are repeated to the last bit, others name what they lack."""

import json
import re
from dataclasses import replace

import pytest
from bound_cases import bound_plan, job, sites
from command_output import assert_refused
from plan_files import (
    bound_case,
    sailor_content,
    write_plan,
    write_sailor,
    write_sites,
    write_train,
)

from agents.decision.plan_document import write_document
from agents.judge.step_times import mean_step
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import trainer_named
from des import (
    NO_CORRECTIONS,
    DecoupledDiLoCo,
    Parallelism,
    Placement,
    Plan,
    build_workload,
    simulate,
)
from scenarios.iteration.command import main


def simulated(tmp_path, capsys, *flags):
    """Document of the command, and the last line for people."""
    out = ["--figures", "", "--out", str(tmp_path / "out"), "--json"]
    assert main([*map(str, flags), *out]) == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err.splitlines()[-1]


def test_a_complete_plan_is_repeated_to_the_last_bit(tmp_path, capsys):
    step_s = bound_case().step_s
    found, said = simulated(tmp_path, capsys, "--plan", write_plan(tmp_path))

    assert found["makespan_s"] == step_s
    assert found["plan"] == {
        "form": "complete plan",
        "trainer": "megatron",
        "step_s": step_s,
        "said_step_s": step_s,
        "document": json.loads(write_plan(tmp_path).read_text("utf-8")),
    }
    assert said == (
        f"complete plan for trainer megatron: {step_s!r} s a step, as the file says, to the last "
        "bit"
    )


def write_learners(folder, trainer="reference", **mode):
    """A complete plan of two learners, as `eastwest decide --json` writes it."""
    fields = {"steps_between": 30, "grace_steps": 0.5, "overlap_steps": 1} | mode
    plan = bound_plan(
        "0*32",
        replicas=(Placement.parse("1*32"),),
        shares=(20, 12),
        synchronisation=DecoupledDiLoCo(**fields),
    )
    step_s = mean_step(sites(), job(), plan, NO_CORRECTIONS)[0]
    bound = replace(bound_case(), plan=plan, step_s=step_s, trainer="reference")
    path = folder / "learners.json"
    path.write_text(json.dumps(write_document(bound) | {"trainer": trainer}), encoding="utf-8")
    return path


@pytest.mark.parametrize("quorum", [1, 2])
def test_learners_with_clocks_of_their_own_are_repeated_to_the_last_bit(tmp_path, capsys, quorum):
    path = write_learners(tmp_path, quorum=quorum)
    found, said = simulated(tmp_path, capsys, "--plan", path)

    assert found["plan"]["document"] == json.loads(path.read_text("utf-8"))
    assert found["plan"]["step_s"] == found["plan"]["said_step_s"]
    assert said.endswith("s a step, as the file says, to the last bit")


@pytest.mark.parametrize("trainer", ["megatron", "torchtitan", "deepspeed"])
def test_a_trainer_without_such_learners_refuses_them_by_name(trainer):
    plan = bound_plan(
        "0*32", replicas=(Placement.parse("1*32"),), synchronisation=DecoupledDiLoCo()
    )
    own = trainer_named(trainer)
    workload = job(gradient_precision=own.gradient_precision)
    with pytest.raises(
        ValueError,
        match=rf"trainer {trainer}: synchronisation must be one of .*; got decoupled_diloco",
    ):
        check_plan(own, sites(), workload, plan)


def test_a_document_with_too_large_a_quorum_is_refused(tmp_path, capsys):
    path = write_learners(tmp_path)
    content = json.loads(path.read_text("utf-8"))
    content["plan"]["synchronisation"]["quorum"] = 3
    path.write_text(json.dumps(content), encoding="utf-8")
    out = tmp_path / "out"
    assert_refused(
        main,
        ["--plan", str(path), "--out", str(out)],
        "quorum must be at most the 2 learners.*got 3",
        capsys,
        unwritten=out,
    )


def test_a_plan_whose_time_is_another_says_by_how_much(tmp_path, capsys):
    step_s = bound_case().step_s
    _, said = simulated(tmp_path, capsys, "--plan", write_plan(tmp_path, step_s=step_s / 1.25))

    assert said.endswith(f"a step, +25.000% of the {step_s / 1.25!r} s that the file says")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--schedule", "gpipe"], "schedule must not be given with plan, which says it"),
        (["--network", "east_central_west"], "network must not be given with plan"),
        (["--sites", "A"], "sites must not be given with plan"),
        (["--bound"], "bound must not be given with plan"),
    ],
)
def test_flags_that_a_complete_plan_says_are_refused(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    argv = ["--plan", str(write_plan(tmp_path)), *flags, "--out", str(out)]
    assert_refused(main, argv, message, capsys, unwritten=out)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", r"plan.json: must be a plan of .*, a plan of Sailor, .* got other JSON"),
        ("{", "plan.json: not readable as JSON in line 1"),
        ("", "plan.json: --num-layers: must be given, got none"),
        ("'", "plan.json: not readable as a command line: No closing quotation"),
        ('{"format": "eastwest-plan"}', "plan.json: version: must be given"),
        ('{"pipeline_list": [], "mbs": 1}', "plan.json: pipeline_list: must hold one pipeline"),
        ('{"pipeline_list": [1], "mbs": 1}', r"plan.json: pipeline_list\[0\]: must be a mapping"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_by_what_it_lacks(text, message, tmp_path, capsys):
    path, out = tmp_path / "plan.json", tmp_path / "out"
    path.write_text(text, encoding="utf-8")
    assert_refused(main, ["--plan", str(path), "--out", str(out)], message, capsys, unwritten=out)


def test_sites_without_a_plan_are_refused(tmp_path, capsys):
    out = tmp_path / "out"
    argv = ["--sites", "East", "--out", str(out)]
    assert_refused(main, argv, "sites needs a plan, got none", capsys, unwritten=out)


def test_a_command_line_of_megatron_is_the_plan_by_hand(tmp_path, capsys):
    """Two stages in A, two in B; its own time is that of sends that wait."""
    found, said = simulated(
        tmp_path,
        capsys,
        *("--plan", write_train(tmp_path), "--network", write_sites(tmp_path)),
        *("--model", "llama2_7b"),
    )

    assert found["makespan_s"] == simulate(sites(), job(), bound_plan()).makespan_s
    assert said.startswith("command line of Megatron-LM for trainer megatron: ")
    complete = tmp_path / "complete.json"
    complete.write_text(json.dumps(found["plan"]["document"]), encoding="utf-8")
    again, said = simulated(tmp_path, capsys, "--plan", complete)
    assert again["makespan_s"] == found["makespan_s"]
    assert said.endswith("to the last bit")


def test_a_plan_of_sailor_is_the_plan_by_hand(tmp_path, capsys):
    """Stages of 8, 16 and 8 layers; embedding and head count in the file. Tensor 4, then 8."""
    one, two = ("H100", "A", 4), ("H100", "B", 8)
    content = sailor_content([one, one], [one, one], [two, two], layers=[9, 16, 9])
    found, said = simulated(
        tmp_path,
        capsys,
        *("--plan", write_sailor(tmp_path, content), "--network", write_sites(tmp_path)),
        *("--model", "llama2_7b", "--gradient-precision", "fp32"),
    )

    workload = job(num_microbatches=16, microbatch_size=4)
    plan = Plan(
        placement=Placement.parse("0*8+16,1*8"),
        parallelism=tuple(map(Parallelism.parse, ("4x2x2", "8x2x1", "1x1x1"))),
        sends="blocking",
    )
    assert found["makespan_s"] == simulate(sites(), workload, plan).makespan_s
    assert said.startswith("plan of Sailor for trainer reference: ")


def test_replicas_of_sailor_in_other_zones_are_replicas(tmp_path, capsys):
    content = sailor_content([("H100", "z1", 8), ("A100", "z2", 8)], layers=[34])
    found, _ = simulated(
        tmp_path,
        capsys,
        *("--plan", write_sailor(tmp_path, content), "--network", write_sites(tmp_path)),
        *("--model", "llama2_7b", "--gradient-precision", "fp32", "--sites", "C,A"),
    )

    plan = Plan(
        placement=Placement.parse("2*32"),
        replicas=(Placement.parse("0*32"),),
        parallelism=tuple(map(Parallelism.parse, ("8x1x1", "1x1x1", "8x1x1"))),
        sends="blocking",
    )
    workload = job(num_microbatches=32, microbatch_size=2)
    check_plan(trainer_named("reference"), sites(), workload, plan)
    assert found["makespan_s"] == simulate(sites(), workload, plan).makespan_s


H100 = ("H100", "A", 8)

WRONG_SAILOR = {
    "dp: must be the replicas of tmp_per_stage": lambda one: one.update(dp=[2]),
    "layers_per_stage: must be of each of num_stages 1": lambda one: one.update(
        layers_per_stage=[[0], [1]]
    ),
    "layers_per_stage: must be the 32 layers of the model, or 34": lambda one: one.update(
        layers_per_stage=[[0, 1, 2]]
    ),
    "zone Mars must be a site of the network, A, B, C": lambda one: one.update(
        tmp_per_stage=[[[[["H100", 8, "Mars"]], 8]]]
    ),
    "must have machines of one GPU in one zone": lambda one: one.update(
        tmp_per_stage=[[[[["H100", 4, "A"], ["H100", 4, "B"]], 8]]]
    ),
}


@pytest.mark.parametrize("message", WRONG_SAILOR)
def test_a_plan_of_sailor_that_is_wrong_is_refused(message, tmp_path, capsys):
    content, out = sailor_content([H100], layers=[34]), tmp_path / "out"
    WRONG_SAILOR[message](content["pipeline_list"][0])
    argv = ["--plan", write_sailor(tmp_path, content), "--network", write_sites(tmp_path)]
    argv += ["--model", "llama2_7b", "--out", out]
    assert_refused(main, map(str, argv), re.escape(message).join((".*", "")), capsys, unwritten=out)


def test_a_model_that_a_command_line_says_is_that_of_its_flags(tmp_path, capsys):
    """Llama 2 7B flag by flag."""
    shape = {
        **dict.fromkeys(("swiglu", "untie_embeddings_and_output_weights"), ""),
        **{"hidden_size": "4096", "num_attention_heads": "32", "ffn_hidden_size": "11008"},
        **{"position_embedding_type": "rope", "vocab_size": "32000", "disable_bias_linear": ""},
    }
    found, _ = simulated(
        tmp_path,
        capsys,
        *("--plan", write_train(tmp_path, **shape), "--network", write_sites(tmp_path)),
    )

    assert found["model"] == "megatron"
    assert found["makespan_s"] == simulate(sites(), job(), bound_plan()).makespan_s
    assert build_workload("llama2_7b").layers == job().layers
