"""The command simulates what its flags say and writes the same bytes twice."""

import dataclasses
import json
import re

import pandas as pd
import pytest
from command_output import error_of, examples_of, help_of
from plan_files import write_plan, write_sites, write_train
from profiled import world_on_h100, write_profile
from simulated_files import FILES, SMALL, figures, results, run

from calibration import write_corrections
from des import (
    ConcurrentJob,
    Corrections,
    GradientExchange,
    Parallelism,
    Placement,
    Plan,
    build_workload,
    read_topology,
    simulate,
    simulate_together,
)
from des.worlds import EAST_CENTRAL_WEST
from scenarios.iteration.command import Config, main


def moving_world(folder):
    """The shipped world with links that are redrawn every tenth of a second."""
    path = folder / "moving.yaml"
    text = EAST_CENTRAL_WEST.read_text(encoding="utf-8")
    assert "update_interval: per_epoch" in text
    path.write_text(text.replace("update_interval: per_epoch", 'update_interval: "0.1s"'))
    return path


def test_the_files_say_what_the_simulator_says(tmp_path):
    files = run(tmp_path / "out", "--placement", "0*26,1*27,2*27", "--schedule", "gpipe")

    result = simulate(
        read_topology(EAST_CENTRAL_WEST),
        build_workload("llama2_70b", num_microbatches=4),
        Plan(placement=Placement.parse("0*26,1*27,2*27"), schedule="gpipe"),
    )
    assert list(files) == FILES
    said = json.loads(files["result.json"])
    assert said["makespan_s"] == result.makespan_s
    assert said["utilisation"] == result.utilisation
    assert said["bubble_fraction"] == result.bubble_fraction
    assert said["communication_cost_bytes"] == result.communication_cost_bytes
    assert said["tokens_per_s"] == 4 * 4096 / result.makespan_s
    assert len(json.loads(files["trace.json"])["traceEvents"]) > len(result.spans)
    spans = pd.read_csv(tmp_path / "out" / "spans.csv")
    pd.testing.assert_frame_equal(spans, result.to_frame("spans"), check_exact=True)
    stages = pd.read_csv(tmp_path / "out" / "stages.csv")
    assert list(stages["busy_s"] + stages["idle_s"]) == pytest.approx([result.makespan_s] * 3)
    links = pd.read_csv(tmp_path / "out" / "links.csv")
    assert links["num_bytes"].sum() == result.communication_cost_bytes


@pytest.mark.parametrize("seed", [[], ["--seed", "3"]], ids=["base", "drawn"])
def test_both_forms_of_a_world_give_the_same_bytes(seed, tmp_path):
    from_yaml = results(tmp_path / "yaml", *seed, "--network", str(EAST_CENTRAL_WEST))
    from_json = results(
        tmp_path / "json", *seed, "--network", str(EAST_CENTRAL_WEST.with_suffix(".json"))
    )

    assert from_yaml == from_json


def test_a_run_repeated_gives_the_same_bytes_over_its_old_files(tmp_path):
    network = str(moving_world(tmp_path))
    folder = tmp_path / "out"

    first = run(folder, "--network", network, "--seed", "5")
    other = run(folder, "--network", network, "--seed", "6")
    again = run(folder, "--network", network, "--seed", "5")

    assert first == again
    assert all(first[name] != other[name] for name in ("spans.csv", "trace.json", "result.json"))


def test_without_a_seed_links_stand_at_their_base_figures(tmp_path):
    still = figures(tmp_path / "still", "--network", str(EAST_CENTRAL_WEST))

    assert figures(tmp_path / "moving", "--network", str(moving_world(tmp_path))) == still


def test_with_a_seed_a_moving_world_moves_within_the_iteration(tmp_path):
    def wire_times_us(*flags):
        trace = json.loads(run(tmp_path / "out", *flags)["trace.json"])
        events = [event for event in trace["traceEvents"] if event.get("cat") == "activation"]
        return {round(event["dur"]) for event in events if event["args"]["sender"] == 0}

    assert len(wire_times_us("--seed", "1")) == 1
    assert len(wire_times_us("--seed", "1", "--network", str(moving_world(tmp_path)))) == 4


def test_domains_can_be_named(tmp_path):
    by_name = results(tmp_path / "name", *SMALL, "--placement", "East*16,West*16")

    assert by_name == results(tmp_path / "number", *SMALL, "--placement", "0*16,2*16")


@pytest.mark.parametrize(
    ("num_layers", "counts"), [("80", [27, 27, 26]), ("7", [3, 2, 2]), ("2", [1, 1])]
)
def test_without_a_placement_layers_are_split_evenly_in_order(num_layers, counts, tmp_path):
    placed = figures(tmp_path, "--model", "llama2_7b", "--num-layers", num_layers)["placement"]

    assert placed == [domain for domain, count in enumerate(counts) for _ in range(count)]


def test_a_model_may_be_a_configuration_file(tmp_path):
    """The keys of meta-llama/Llama-2-7b-hf are the preset: equal spans, stages and links."""
    keys = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    further = {"model_type": "llama", "intermediate_size": 11008, "vocab_size": 32000}
    (tmp_path / "config.json").write_text(json.dumps(keys | further), "utf-8")
    placement = ("--placement", "0*16,1*16")
    read = run(tmp_path / "file", "--model", str(tmp_path), *placement)
    preset = run(tmp_path / "preset", *SMALL, *placement)

    assert json.loads(read["result.json"])["model"] == str(tmp_path)
    for name in ("spans.csv", "stages.csv", "links.csv", "memory_over_time.csv"):
        assert read[name] == preset[name]


def test_corrections_from_a_file_are_applied(tmp_path):
    path = tmp_path / "corrections.json"
    write_corrections(Corrections(compute_time_factor=2.0), path)
    alone = [*SMALL, "--placement", "East*32"]  # computes only

    corrected = figures(tmp_path / "corrected", *alone, "--corrections", str(path))

    plain = figures(tmp_path / "plain", *alone)
    assert corrected["makespan_s"] == pytest.approx(2 * plain["makespan_s"])
    assert corrected["corrections"]["compute_time_factor"] == 2.0


def test_other_jobs_share_the_links_and_change_nothing_else(tmp_path, capsys):
    flags = [*SMALL, "--placement", "0*16,1*16"]
    alone = results(tmp_path / "alone", *flags)
    others = "llama2_13b:0*20,1*20:2; llama2_7b:East*16,Central*16"
    together = results(tmp_path / "together", *flags, "--other-jobs", others)

    jobs = [
        ConcurrentJob(
            workload=build_workload(model, num_microbatches=4),
            plan=Plan(placement=Placement.parse(placement)),
            priority=priority,
        )
        for model, placement, priority in (
            ("llama2_7b", "0*16,1*16", 0),
            ("llama2_13b", "0*20,1*20", 2),
            ("llama2_7b", "0*16,1*16", 0),
        )
    ]
    topology = read_topology(EAST_CENTRAL_WEST)
    said = json.loads(together.pop("result.json"))
    assert [(one["model"], one["priority"]) for one in said["jobs"]] == [
        (job.workload.name, job.priority) for job in jobs
    ]
    assert [one["alone_s"] for one in said["jobs"]] == [
        simulate(topology, job.workload, job.plan).makespan_s for job in jobs
    ]
    assert [one["together_s"] for one in said["jobs"]] == [
        result.makespan_s for result in simulate_together(topology, jobs)
    ]
    del said["jobs"]
    assert said == json.loads(alone.pop("result.json"))
    assert together == alone
    assert "slower by" in capsys.readouterr().out


def test_flags_of_a_plan_are_the_plan(tmp_path):
    """Two replicas, one of them with four GPUs that share everything in three ways."""
    flags = [
        "--placement",
        "East*32",
        "--replicas",
        "2*32",
        "--no-overlap-gradients",
        "--shares",
        "3,1",
    ]
    flags += ["--parallelism", "2x2x2,1x1x1,2x1x4", "--shard-optimiser"]
    flags += ["--gradient-bucket-mb", "500", "--activation-compression", "2", "--tree", "0"]
    said = figures(tmp_path, *SMALL, *flags)

    chosen = Plan(
        placement=Placement.parse("0*32"),
        replicas=(Placement.parse("2*32"),),
        shares=(3, 1),
        parallelism=(
            Parallelism(tensor=2, data=2, pipeline=2, sharding="optimiser"),
            Parallelism(sharding="optimiser"),
            Parallelism(tensor=2, pipeline=4, sharding="optimiser"),
        ),
        exchange=GradientExchange(overlapped=False, bucket_bytes=500e6, tree=(0,)),
        activation_compression=2.0,
    )
    topology = read_topology(EAST_CENTRAL_WEST)
    workload = build_workload("llama2_7b", num_microbatches=4)
    result = simulate(topology, workload, chosen)
    assert said["makespan_s"] == result.makespan_s
    assert said["exposed_exchange_s"] == result.exposed_exchange_s > 0
    assert (said["replicas"], said["shares"]) == ([[2] * 32], [3, 1])
    assert said["parallelism"][2]["pipeline"] == 4
    assert said["exchange"] == {**dataclasses.asdict(chosen.exchange), "tree": [0]}
    assert said["activation_compression"] == 2.0


def test_replicas_may_share_the_optimiser(tmp_path):
    """Of 16 bytes a parameter each of two holds 4 and half of 12; one copy alone is refused."""
    copies = (*SMALL, "--placement", "East*32", "--replicas", "2*32")
    said = figures(tmp_path, *copies, "--shard-replicas")

    chosen = Plan(
        placement=Placement.parse("0*32"),
        replicas=(Placement.parse("2*32"),),
        exchange=GradientExchange(sharded=True),
    )
    workload = build_workload("llama2_7b", num_microbatches=4)
    assert (
        said["makespan_s"]
        == simulate(read_topology(EAST_CENTRAL_WEST), workload, chosen).makespan_s
    )
    assert said["exchange"]["sharded"]


def test_one_parallelism_holds_for_all_domains(tmp_path):
    one = results(tmp_path / "one", *SMALL, "--parallelism", "4x2x1")

    assert one == results(tmp_path / "all", *SMALL, "--parallelism", "4x2x1,4x2x1,4x2x1")


def test_help_explains_every_flag_with_examples(capsys):
    assert "examples:" in help_of(main, capsys, fields=dataclasses.fields(Config))


LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
"""``config.json`` of Llama 2 7B."""


def test_the_examples_of_the_help_run(capsys, tmp_path, monkeypatch):
    examples = examples_of(help_of(main, capsys), "scenarios.simulate")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    world = world_on_h100(tmp_path / "cluster.yaml", "layer_times: shapes")
    write_profile(tmp_path / "layers.csv", read_topology(world).domains[0], "llama2_7b")

    write_plan(tmp_path)
    write_train(tmp_path)
    write_sites(tmp_path)
    assert len(examples) == 11
    for example in examples:
        assert main(example) == 0
        assert sorted(path.name for path in tmp_path.glob("runs/simulate/*")) == FILES


def test_the_bound_is_below_the_iteration_and_names_what_binds(tmp_path, capsys):
    assert main([*SMALL, "--bound", "--out", str(tmp_path)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    match = re.fullmatch(r"no plan is below (.*) s, which (\w+) binds .* is (.*)% above it", line)
    assert match is not None
    assert float(match[1]) > 0.0
    assert float(match[3]) >= 0.0


def test_the_bound_is_refused_for_plans_that_it_is_not_about(tmp_path, capsys):
    flags = [*SMALL, "--recomputation", "full", "--bound", "--out", str(tmp_path)]
    assert "recomputation must be the default with --bound" in error_of(main, flags, capsys)


def test_an_uplink_below_a_link_is_a_note(tmp_path, capsys):
    world, uplink = EAST_CENTRAL_WEST.read_text(), "num_gpus: 8\n      uplink: 4Gbps"
    (tmp_path / "world.yaml").write_text(world.replace("num_gpus: 8", uplink, 1))

    run(tmp_path / "out", *SMALL, "--network", str(tmp_path / "world.yaml"), "--figures", "")

    note = "note: uplink of East, 4 Gbit/s, is below its link East->Central, 5 Gbit/s\n"
    assert note in capsys.readouterr().err
