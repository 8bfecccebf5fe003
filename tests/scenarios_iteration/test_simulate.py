"""The command simulates what its flags say, writes the same bytes twice and refuses the rest."""

import dataclasses
import json
import re
import shlex

import pandas as pd
import pytest
from strategies import ALLOWED_SCHEDULES

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
from des.worlds import EAST_CENTRAL_WEST, WORLDS
from scenarios.iteration.command import Config, main
from scenarios.suites.make_topology import main as make_topology

FILES = [
    "gantt.png",
    "links.csv",
    "memory.png",
    "memory_over_time.csv",
    "result.json",
    "spans.csv",
    "stages.csv",
    "trace.json",
]
QUICK = ["--microbatches", "4"]
SMALL = ["--model", "llama2_7b"]  # fits into any of the domains


def run(folder, *flags):
    """Run the command on a few microbatches and return its files."""
    assert main([*QUICK, *flags, "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def figures(folder, *flags):
    return json.loads(run(folder, *flags)["result.json"])


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
    from_yaml = run(tmp_path / "yaml", *seed, "--network", str(EAST_CENTRAL_WEST))
    from_json = run(
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
    by_name = run(tmp_path / "name", *SMALL, "--placement", "East*16,West*16")

    assert by_name == run(tmp_path / "number", *SMALL, "--placement", "0*16,2*16")


@pytest.mark.parametrize(
    ("num_layers", "counts"), [("80", [27, 27, 26]), ("7", [3, 2, 2]), ("2", [1, 1])]
)
def test_without_a_placement_layers_are_split_evenly_in_order(num_layers, counts, tmp_path):
    placed = figures(tmp_path, "--model", "llama2_7b", "--num-layers", num_layers)["placement"]

    assert placed == [domain for domain, count in enumerate(counts) for _ in range(count)]


def test_corrections_from_a_file_are_applied(tmp_path):
    path = tmp_path / "corrections.json"
    write_corrections(Corrections(compute_time_factor=2.0), path)
    alone = [*SMALL, "--placement", "East*32"]  # computes only

    corrected = figures(tmp_path / "corrected", *alone, "--corrections", str(path))

    plain = figures(tmp_path / "plain", *alone)
    assert corrected["makespan_s"] == pytest.approx(2 * plain["makespan_s"])
    assert corrected["corrections"]["compute_time_factor"] == 2.0


def test_transfer_compute_ratio_is_the_closed_form_for_equal_stages(tmp_path):
    """``R = h / B * F_eff / N_stage``; re-divided layers are equal, and each stage has four."""
    flags = [*SMALL, "--num-layers", "8", "--placement", "East*4,Central*4"]
    ratio = figures(tmp_path, *flags)["transfer_compute_ratio"]

    message_bytes = 2 * 4096 * 4096
    stage_flops = sum(build_workload("llama2_7b", num_layers=8).forward_flops[:4])
    effective_flops_per_s = 8 * 120e12 * 0.5
    wire_s = message_bytes / (5e9 / 8)
    assert ratio == pytest.approx(wire_s * effective_flops_per_s / stage_flops)


def test_a_placement_without_borders_has_no_transfer_compute_ratio(tmp_path, capsys):
    assert figures(tmp_path, *SMALL, "--placement", "West*32")["transfer_compute_ratio"] is None
    assert "no borders" in capsys.readouterr().out


def test_a_world_with_prices_says_what_an_iteration_costs(tmp_path, capsys):
    """4 microbatches of 33.6 MB each way at 0.02 and 0.09 USD per GB; 16 GPUs at 4.1 an hour."""
    placed = [*SMALL, "--network", "aws_like", "--placement", "Oregon*16,Tokyo*16"]
    said = figures(tmp_path, *placed)

    gigabytes = 4 * 2 * 4096 * 4096 / 1e9
    cost = said["cost"]
    assert cost["num_bytes"] == said["communication_cost_bytes"] == 2 * gigabytes * 1e9
    assert cost["communication_usd"] == pytest.approx(gigabytes * (0.02 + 0.09))
    assert cost["compute_usd"] == pytest.approx(16 * 4.1 * said["makespan_s"] / 3600)
    assert cost["total_usd"] == cost["communication_usd"] + cost["compute_usd"]
    shown = capsys.readouterr().out
    assert f"{cost['communication_usd']:.4f} USD" in shown
    assert f"{cost['compute_usd']:.4f} USD" in shown


def test_other_jobs_share_the_links_and_change_nothing_else(tmp_path, capsys):
    flags = [*SMALL, "--placement", "0*16,1*16"]
    alone = run(tmp_path / "alone", *flags)
    others = "llama2_13b:0*20,1*20:2; llama2_7b:East*16,Central*16"
    together = run(tmp_path / "together", *flags, "--other-jobs", others)

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


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            "llama2_7b",
            "other-jobs must be model:placement[:priority], separated by semicolons; "
            "got 'llama2_7b'",
        ),
        ("llama2_7b:0*32:high", "other-jobs must be .* got 'llama2_7b:0*32:high'"),
        ("llama2_7b:0*32;", "other-jobs must be .* got ''"),
        (
            "llama2_7b:0*31",
            "other-jobs: llama2_7b:0*31: .* for each of the 32 layers of llama2_7b, got 31",
        ),
        ("gpt3_175b:0*96", "other-jobs: gpt3_175b:0*96: .* East must hold at most 640.0 GB"),
    ],
)
def test_other_jobs_that_cannot_be_are_refused_in_one_line(others, message, tmp_path, capsys):
    assert main([*QUICK, "--other-jobs", others, "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(re.escape(message).replace(r"\.\*", ".*"), line)
    assert not (tmp_path / "out").exists()


def test_priorities_on_links_that_are_shared_fairly_are_refused(tmp_path, capsys):
    path = tmp_path / "fair.yaml"
    text = EAST_CENTRAL_WEST.read_text(encoding="utf-8")
    path.write_text(text + "transport:\n  sharing: fair\n")
    flags = ["--network", str(path), "--other-jobs", "llama2_7b:0*32:1"]

    assert main([*QUICK, *flags, "--out", str(tmp_path / "out")]) == 2
    assert "priorities of jobs must be equal where" in capsys.readouterr().err


def test_a_world_without_prices_says_nothing_of_dollars(tmp_path, capsys):
    assert figures(tmp_path, *SMALL)["cost"] is None
    assert "USD" not in capsys.readouterr().out


def test_exposed_communication_is_what_the_network_adds(tmp_path, capsys):
    """One microbatch over one border waits for one message each way: 33.6 MB at 5 Gbit/s, 30 ms."""
    placed = [*SMALL, "--placement", "East*16,Central*16", "--microbatches", "1"]
    said = figures(tmp_path, *placed)

    expected_s = 2 * (2 * 4096 * 4096 / 625e6 + 0.03)
    assert said["exposed_communication_s"] == pytest.approx(expected_s)
    assert f"{expected_s:.3f} s" in capsys.readouterr().out
    assert figures(tmp_path, *SMALL, "--placement", "East*32")["exposed_communication_s"] == 0.0


def test_a_missing_price_is_an_error_that_names_it(tmp_path, capsys):
    shipped = WORLDS["aws_like"].read_text(encoding="utf-8")
    (tmp_path / "world.yaml").write_text(shipped.replace(", price_usd_per_gb: 0.09", ""))
    flags = [*SMALL, "--network", str(tmp_path / "world.yaml"), "--placement", "Oregon*16,Tokyo*16"]

    assert main([*flags, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        "error: link Tokyo->Oregon: price_usd_per_gb must be given to reckon a cost, got None\n"
    )
    assert not (tmp_path / "out").exists()


def test_the_terminal_shows_figures_tables_and_files(tmp_path, capsys):
    said = figures(tmp_path, *SMALL, "--placement", "East*16,Central*16")

    shown = capsys.readouterr().out
    assert f"{said['makespan_s']:.3f} s" in shown
    for text in ("East->Central", "Central->East", "16-31", "640.0", "bubble fraction"):
        assert text in shown
    assert "West" not in shown
    for name in FILES:
        assert f"written: {tmp_path / name}\n" in shown


def test_flags_of_a_plan_are_the_plan(tmp_path):
    """Two replicas, one of them with four GPUs that share everything in three ways."""
    flags = ["--placement", "East*32", "--replicas", "2*32", "--no-overlap-gradients"]
    flags += ["--parallelism", "2x2x2,1x1x1,2x1x4", "--shard-optimiser"]
    flags += ["--gradient-bucket-mb", "500", "--activation-compression", "2"]
    said = figures(tmp_path, *SMALL, *flags)

    chosen = Plan(
        placement=Placement.parse("0*32"),
        replicas=(Placement.parse("2*32"),),
        parallelism=(
            Parallelism(tensor=2, data=2, pipeline=2, shard_optimiser=True),
            Parallelism(shard_optimiser=True),
            Parallelism(tensor=2, pipeline=4, shard_optimiser=True),
        ),
        exchange=GradientExchange(overlapped=False, bucket_bytes=500e6),
        activation_compression=2.0,
    )
    topology = read_topology(EAST_CENTRAL_WEST)
    workload = build_workload("llama2_7b", num_microbatches=4)
    result = simulate(topology, workload, chosen)
    assert said["makespan_s"] == result.makespan_s
    assert said["exposed_exchange_s"] == result.exposed_exchange_s > 0
    assert said["replicas"] == [[2] * 32]
    assert said["parallelism"][2]["pipeline"] == 4
    assert said["exchange"] == {"overlapped": False, "bucket_bytes": 500e6}
    assert said["activation_compression"] == 2.0


def test_one_parallelism_holds_for_all_domains(tmp_path):
    one = run(tmp_path / "one", *SMALL, "--parallelism", "4x2x1")

    assert one == run(tmp_path / "all", *SMALL, "--parallelism", "4x2x1,4x2x1,4x2x1")


def test_compressed_activations_of_every_replica_count(tmp_path):
    """Replicas of one and three borders, half the microbatches each; messages of a quarter."""
    topology = tmp_path / "six.yaml"
    assert make_topology(["--num-domains", "6", "--out", str(topology)]) == 0
    flags = ["--network", str(topology), "--placement", "0*16,1*16", "--activation-compression"]
    flags += ["4", "--replicas", "2*8,3*8,4*8,5*8"]

    message_bytes = build_workload("llama2_7b").message_bytes
    sent_bytes = figures(tmp_path / "out", *SMALL, *flags)["cross_domain_bytes"]
    assert sent_bytes == 2 * (1 + 3) * 2 * message_bytes / 4


def test_memory_over_time_peaks_at_what_is_said(tmp_path, capsys):
    said = figures(tmp_path, "--parallelism", "2x2x2", "--shard-optimiser")

    table = pd.read_csv(tmp_path / "memory_over_time.csv")
    fullest = said["fullest_gpu"]
    own = table[(table["domain"] == fullest["domain"]) & (table["device"] == fullest["device"])]
    assert own["total_bytes"].max() == fullest["peak_bytes"] == table["total_bytes"].max()
    required = {
        one["domain"]: one["model_state_bytes"] + one["activation_bytes"] for one in said["memory"]
    }
    peaks = 8 * table.groupby("domain")["total_bytes"].max()
    assert peaks.to_dict() == pytest.approx(required)
    assert f"{fullest['peak_bytes'] / 1e9:.1f} of 80.0 GB in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "gpt3_175b"], "plan: domain East must hold at most 640.0 GB, got 1102"),
        (["--model", "gpt5"], "model: must be one of llama2_7b, .*; got 'gpt5'"),
        (["--placement", "0*28"], "placement: .* each of the 80 layers .* got 28"),
        (["--placement", "3*80"], "placement: layer 0 .* East 0, Central 1, West 2; got 3"),
        (["--placement", "Mars*80"], r"placement: .* East, Central, West .*; got 'Mars\*80'"),
        (["--schedule", "zero"], f"{ALLOWED_SCHEDULES} 'zero'"),
        (["--parallelism", "2x2"], "parallelism: must be TENSORxDATAxPIPELINE, .* got '2x2'"),
        (["--parallelism", "2x1x1,2x1x1"], "parallelism must be .* each of 3 domains, got 2"),
        (["--parallelism", "4x4x1"], "plan: parallelism of domain East .* which is 16"),
        (["--shard-optimiser"], "shard_optimiser needs a parallelism, got none"),
        (["--replicas", "0*80"], "plan: a domain must serve one replica, got domain 0 in two"),
        (["--replicas", "2*80;x"], "placement: each item must be .*; got 'x'"),
        (["--gradient-bucket-mb", "0"], "gradient exchange: bucket_bytes must be positive"),
        (["--activation-compression", "0.5"], "plan: activation_compression must be at least 1"),
        (["--microbatches", "0"], "num_microbatches must be a whole number .*, got 0"),
        (["--microbatch-size", "0"], "microbatch_size must be a whole number .*, got 0"),
        (["--sequence-length", "-1"], "sequence_length must be a whole number .*, got -1"),
        (["--num-layers", "0"], "num_layers must be a whole number .*, got 0"),
        (["--network", "none.yaml"], "none.yaml: topology file cannot be read"),
        (["--corrections", "none.json"], "none.json: corrections file cannot be read"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line_and_nothing_is_written(
    flags, message, tmp_path, capsys
):
    assert main([*flags, "--out", str(tmp_path / "out")]) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert re.match(f"error: .*{message}", shown.err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--seed", "x"], "argument --seed: must be an integer, or none, got 'x'"),
        (["--microbatches", "x"], "argument --microbatches: must be an integer, got 'x'"),
        (["--micro", "3"], "unknown argument '--micro'; did you mean '--microbatches'?"),
    ],
)
def test_wrong_flags_end_with_one_line_and_exit_code_2(flags, message, capsys):
    assert main(flags) == 2

    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path, capsys):
    (tmp_path / "file").touch()

    assert main([*QUICK, "--out", str(tmp_path / "file")]) == 2

    shown = capsys.readouterr()
    assert shown.err == f"error: {tmp_path / 'file'}: cannot be written: File exists\n"
    assert shown.out == ""


def test_help_explains_every_flag_with_examples(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])

    shown = capsys.readouterr().out
    assert end.value.code == 0
    for field in dataclasses.fields(Config):
        assert re.search(f"^  --{field.name.replace('_', '-')}[ ,]", shown, re.M)
    assert "examples:" in shown


def test_the_examples_of_the_help_run(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["--help"])
    examples = re.findall(r"^  python -m scenarios.simulate(.*)$", capsys.readouterr().out, re.M)
    monkeypatch.chdir(tmp_path)

    assert len(examples) == 6
    for example in examples:
        assert main(shlex.split(example)) == 0
        assert sorted(path.name for path in tmp_path.glob("runs/simulate/*")) == FILES
