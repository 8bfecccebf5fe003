"""The command: files written whole or not at all, and folders read back by the simulator."""

import json
import os
from dataclasses import replace

import pytest
from bound_cases import bound_plan, job, sites
from command_output import assert_refused
from launch_cases import bound_of, drawn_bound
from plan_files import bound_case, write_plan

from des import GradientExchange, Placement, Plan, Topology
from scenarios.iteration.command import main as simulate_main
from scenarios.launch.command import main
from scenarios.launch.launch_files import for_trainer, launch_files
from scenarios.run.decide_command import main as decide_main

MEGATRON_FILES = [
    "A.sbatch",
    "B.sbatch",
    "README.md",
    "args.txt",
    "borders.tsv",
    "hosts.txt",
    "launch.sh",
    "nccl.env",
    "nccl_rate.sh",
    "plan.json",
    "preflight.sh",
]


def written(tmp_path, *flags):
    """Folder of a launch of the plan of `plan_files`."""
    out = tmp_path / "launch"
    assert main([str(write_plan(tmp_path)), "--out", str(out), *flags]) == 0
    return out


def simulated(folder, tmp_path, capsys, flag="--plan"):
    """Document of the simulator on a folder, and its last line."""
    argv = [flag, str(folder), "--out", str(tmp_path / "out"), "--figures", "", "--json"]
    assert simulate_main(argv) == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err.splitlines()[-1]


def test_a_folder_is_written_and_simulated_to_the_last_bit(tmp_path, capsys):
    folder = written(tmp_path)
    said = capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == MEGATRON_FILES
    assert f"{bound_case().step_s!r} s a step, as the plan; hosts are placeholders" in said
    assert os.access(folder / "launch.sh", os.X_OK)
    assert not os.access(folder / "args.txt", os.X_OK)

    found, line = simulated(folder, tmp_path, capsys)
    assert found["makespan_s"] == bound_case().step_s
    assert found["plan"]["form"] == "launch of Megatron-LM"
    assert line.endswith("s a step, as the file says, to the last bit")
    assert simulated(folder, tmp_path, capsys, "--launch") == (found, line)


def test_a_flag_that_is_changed_by_hand_changes_the_simulated_time(tmp_path, capsys):
    """Twice the sequences: more than half as long again."""
    folder = written(tmp_path)
    args = folder / "args.txt"
    args.write_text(args.read_text("utf-8").replace("batch-size 32", "batch-size 64"), "utf-8")
    capsys.readouterr()

    found, line = simulated(folder, tmp_path, capsys)
    assert found["makespan_s"] > 1.5 * bound_case().step_s
    assert "% of the" in line


def test_the_same_plan_gives_the_same_bytes(tmp_path):
    first, second = (launch_files(bound_case()).files for _ in range(2))

    assert first == second


@pytest.mark.parametrize("trainer", ["deepspeed", "ideal"])
def test_trainers_without_a_writer_are_refused_by_name(trainer, tmp_path, capsys):
    out = tmp_path / "launch"
    argv = [str(write_plan(tmp_path)), "--out", str(out), "--trainer", trainer]
    message = f"trainer must be one of megatron, torchtitan, .* got {trainer}"
    assert_refused(main, argv, message, capsys, unwritten=out)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--hosts", "none.txt"], "none.txt: hosts cannot be read: No such file"),
        (["--trainer", "slurm"], "trainer: must be one of .* got 'slurm'"),
        (["--config", "x.yaml"], "x.yaml"),
    ],
)
def test_flags_that_cannot_be_are_refused(flags, message, tmp_path, capsys):
    out = tmp_path / "launch"
    argv = [str(write_plan(tmp_path)), "--out", str(out), *flags]
    assert_refused(main, argv, message, capsys, unwritten=out)


def test_a_folder_with_files_stays_as_it_is(tmp_path, capsys):
    out = tmp_path / "launch"
    out.mkdir()
    (out / "mine").write_text("x", encoding="utf-8")
    argv = [str(write_plan(tmp_path)), "--out", str(out)]
    message = ".*launch: must be a new or empty folder"
    assert_refused(main, argv, message, capsys, unwritten=tmp_path / ".launch.tmp")

    assert [path.name for path in out.iterdir()] == ["mine"]


def test_a_plan_for_another_trainer_has_its_time_there(tmp_path, capsys):
    """torchtitan sends under 1F1B as Megatron-LM does, so the time is the same."""
    folder = written(tmp_path, "--trainer", "torchtitan")
    capsys.readouterr()
    found, _ = simulated(folder, tmp_path, capsys)

    assert found["plan"]["trainer"] == "torchtitan"
    assert found["makespan_s"] == bound_case().step_s
    assert for_trainer(bound_case(), "torchtitan").step_s == bound_case().step_s


def test_what_a_trainer_cannot_be_told_is_refused_where_it_takes_time():
    """torchtitan starts sums behind the backward pass of each layer; this plan behind the last."""
    others = (Placement.parse("1*32"), Placement.parse("2*32"))
    plan = bound_plan("0*32", "8x1x2", replicas=others, exchange=GradientExchange(overlapped=False))
    near = [replace(link, bandwidth_bytes_per_s=1e11, latency_s=1e-4) for link in sites().links]
    topology = Topology.of(sites().domains, near)
    bound = bound_of(plan, topology, job(num_microbatches=3), "torchtitan")

    with pytest.raises(ValueError, match=r"they cannot say exchange .*overlapped=False"):
        launch_files(bound)


def test_what_takes_little_time_is_said_on_the_page():
    """Without replicas gradients do not leave their site, whatever the bucket."""
    bound = bound_of(bound_plan(exchange=GradientExchange(bucket_bytes=1e9)))
    launch = launch_files(bound)

    assert abs(launch.step_s / bound.step_s - 1.0) <= 0.01
    assert "- exchange GradientExchange(" in launch.files["README.md"]


def test_every_replica_of_diloco_is_a_launch_with_a_lighthouse_for_all():
    bound = next(
        found
        for found in (drawn_bound("torchtitan", seed) for seed in range(24))
        if found.plan.synchronisation.steps_between > 1
    )
    files = launch_files(bound).files
    for number in range(len(bound.plan.placements)):
        assert f"replica_id = {number}\n" in files[f"replica-{number}/config.toml"]
        assert f"replica-{number}/launch.sh" in files
    assert "torchft_lighthouse" in files["lighthouse.sh"]
    assert "TORCHFT_LIGHTHOUSE" in files["README.md"]


def test_stages_there_and_back_are_laid_so_by_torchtitan_alone():
    """Two chunks a rank in a V: the name ZBVZeroBubble lays stages so, the file has the order."""
    plan = Plan(
        placement=Placement.parse("0*32"),
        schedule="greedy",
        parallelism=(replace(bound_plan(each="8x1x2w2").parallelism[0], sharding="none"),) * 3,
    )
    bound = bound_of(plan, trainer="torchtitan")
    launch = launch_files(bound)

    assert launch.step_s == bound.step_s
    assert 'pipeline_parallel_schedule = "ZBVZeroBubble"' in launch.files["config.toml"]
    assert launch.files["schedule.csv"].splitlines()[0].startswith("0F0,")
    with pytest.raises(ValueError, match="trainer megatron: "):
        for_trainer(bound, "megatron")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--trainer", "ideal", "--launch", "{out}"], "must be one of megatron, .* got ideal"),
        (
            ["--trainer", "deepspeed", "--launch", "{out}"],
            "must be .* torchtitan, .* got deepspeed",
        ),
        (["--stream", "--launch", "{out}"], "launch must be left out with stream"),
        (["--hosts", "hosts.yaml"], "hosts must come with launch, got hosts.yaml alone"),
    ],
)
def test_decide_refuses_a_launch_that_cannot_be(flags, message, tmp_path, capsys):
    out = tmp_path / "launch"
    argv = ["--network", "east_central_west", *(flag.format(out=out) for flag in flags)]
    assert_refused(decide_main, argv, message, capsys, unwritten=out)
