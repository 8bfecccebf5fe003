"""One time a source of layer times: every command gives one job on one world the same time."""

import json

import pandas as pd
import pytest
from profiled import SMALL_CSV

from agents.decide import main as decide
from scenarios.iteration.command import main as simulate
from scenarios.run.command import main as run
from scenarios.study.compare.command import main as compare
from scenarios.study.targets.command import main as kpi

SEQUENCES = 16
SITE = """\
    - {{name: {name}, num_gpus: 8, gpu: h100, layer_times: {source}, intra_bandwidth: 450GB/s,
       intra_latency: 3us}}
"""
LINKS = """\
  cross_domain_links:
    - {source: A, dest: B, bandwidth: 100Mbps, latency: 50ms}
dynamics: steady
"""
MODEL = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
}
SOURCES = {
    "fraction": ("fraction", "FLOPs at 0.5 of the peak"),
    "shapes": ("shapes", "shapes of matrices on h100"),
    "profile": ("shapes", "profile layers.csv of h100"),
}


@pytest.fixture(params=SOURCES)
def asked(request, tmp_path):
    """Flags of a world and a job, and what outputs say of layer times."""
    key, said = SOURCES[request.param]
    sites = "".join(SITE.format(name=name, source=key) for name in "AB")
    (tmp_path / "world.yaml").write_text(f"topology:\n  domains:\n{sites}{LINKS}", "utf-8")
    (tmp_path / "layers.csv").write_text(SMALL_CSV, "utf-8")
    flags = ["--network", str(tmp_path / "world.yaml"), "--model", "llama2_7b"]
    flags += ["--sequence-length", "4096"]
    if request.param == "profile":
        flags += ["--profile", str(tmp_path / "layers.csv")]
    return flags, said


def by_hand(document):
    """Flags of the plan of a decision; gradients and sends are left to the trainer."""
    plan = document["plan"]
    each = list(plan["parallelism"].values())
    degrees = ",".join(
        f"{one['tensor']}x{one['data']}x{one['pipeline']}"
        + (f"v{one['chunks']}" if one["chunks"] > 1 else "")
        for one in each
    )
    flags = ["--placement", plan["pipelines"][0], "--schedule", plan["schedule"]]
    flags += ["--parallelism", degrees, "--sharding", max(one["sharding"] for one in each)]
    return [*flags, *sized(document)]


def sized(document):
    """Flags of the size of microbatches that a decision has chosen."""
    size = document["job"]["microbatch_size"]
    return ["--microbatch-size", str(size), "--microbatches", str(SEQUENCES // size)]


def test_all_commands_take_the_time_of_the_decision(asked, tmp_path, capsys):
    bare, said = asked
    flags = [*bare, "--microbatches", str(SEQUENCES)]
    plan, quiet = str(tmp_path / "plan.json"), ["--figures", ""]
    assert decide([*flags, "--json", "--out", plan]) == 0
    document = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    step_s = document["step_s"]
    assert "," not in document["plan"]["pipelines"][0]  # the links are too slow for two sites
    hand = [*bare, *by_hand(document), "--trainer", "megatron", *quiet]
    assert simulate(["--plan", plan, *quiet, "--out", str(tmp_path / "a")]) == 0
    assert simulate([*hand, "--out", str(tmp_path / "b")]) == 0
    for name in "ab":
        found = json.loads((tmp_path / name / "result.json").read_text("utf-8"))
        assert found["makespan_s"] == step_s
        assert set(found["layer_times"].values()) == {said}
    for name, own in (
        ("c", ["--plan", plan, *quiet]),
        ("d", [*bare, *sized(document), "--planner", "search_bound", *quiet]),
        ("g", [*flags, "--planner", "search_bound", *quiet]),
    ):
        epochs = ["--epochs", "1", "--epoch-s", "0.01", "--out", str(tmp_path / name)]
        assert run([*own, *epochs]) == 0
        rows = pd.read_csv(tmp_path / name / "iterations.csv")
        assert rows["duration_s"].tolist() == [step_s]

    assert_studies_agree(flags, step_s, tmp_path, capsys, said)


def assert_studies_agree(flags, step_s, tmp_path, capsys, said):
    """Take the times of `compare` and `kpi` on the flags of a decision."""
    capsys.readouterr()
    quiet = ["--figures", ""]
    planners = ["--planners", "decide", "--num-draws", "1"]
    assert compare([*flags, *planners, *quiet, "--out", str(tmp_path / "e")]) == 0
    assert f"layer times: {said}" in " ".join(capsys.readouterr().out.split())
    assert pd.read_csv(tmp_path / "e" / "static.csv")["time_s"].tolist() == [step_s]

    targets = ["--targets", "bound", "--method", "search_bound", "--quick"]
    assert kpi([*flags, *targets, *quiet, "--out", str(tmp_path / "f")]) in (0, 1)
    shown = (tmp_path / "f" / "kpi.json").read_text("utf-8")
    assert f"layer times: {said}" in shown
    assert f"{step_s!r} s a step, {step_s!r} s on one domain" in shown


@pytest.mark.parametrize("asked", ["fraction"], indirect=True)
@pytest.mark.parametrize("form", ["config.json", "."])
def test_a_model_from_a_file_has_one_time_in_studies(form, asked, tmp_path, monkeypatch, capsys):
    bare, said = asked
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(MODEL), "utf-8")
    monkeypatch.chdir(tmp_path)
    model = "model/config.json" if form == "config.json" else "model"
    flags = [*bare, "--model", model, "--microbatches", str(SEQUENCES)]
    assert decide([*flags, "--json", "--out", "plan.json"]) == 0
    step_s = json.loads((tmp_path / "plan.json").read_text("utf-8"))["step_s"]
    assert_studies_agree(flags, step_s, tmp_path, capsys, said)
    assert decide([*flags, "--model", "llama2_7b", "--json", "--out", "preset.json"]) == 0
    assert json.loads((tmp_path / "preset.json").read_text("utf-8"))["step_s"] == step_s


@pytest.mark.parametrize("asked", ["shapes"], indirect=True)
def test_the_kernel_of_attention_is_a_flag_of_its_own(asked, tmp_path, monkeypatch):
    flags = [*asked[0], "--microbatches", str(SEQUENCES), "--json", "--out", "plan.json"]
    monkeypatch.chdir(tmp_path)
    steps_s = {}
    for kernel in ("none", "flash", "plain"):
        assert decide([*flags, "--attention", kernel]) == 0
        found = json.loads((tmp_path / "plan.json").read_text("utf-8"))
        steps_s[kernel] = found["step_s"]
        recomputation = found["job"]["recomputation"]
        is_plain = recomputation == "none" or found["job"].get("attention") == "plain"
        assert is_plain == (kernel == "plain")
        assert simulate(["--plan", "plan.json", "--figures", "", "--out", kernel]) == 0
        result = json.loads((tmp_path / kernel / "result.json").read_text("utf-8"))
        assert result["makespan_s"] == found["step_s"]
    assert steps_s["none"] == steps_s["flash"] < steps_s["plain"]


def test_divided_layers_and_idle_flags_are_said(tmp_path, capsys):
    flags = ["--planners", "uniform", "--figures", "", "--out", str(tmp_path / "out")]
    job = ["--network", "east_central_west", "--model", "llama2_7b", "--num-layers", "8"]

    assert compare([*flags, "--num-layers", "8"]) == 2
    assert "num_layers must be left out without network" in capsys.readouterr().err
    assert compare([*flags, *job, "--suite", "hard"]) == 2
    assert "suite must be left out with network" in capsys.readouterr().err
    assert kpi(["--num-layers", "8", "--out", str(tmp_path / "out")]) == 2
    assert "num_layers must be left out without network" in capsys.readouterr().err

    assert compare([*flags, *job, "--num-draws", "1"]) == 0
    assert "num_layers 8: parameters and FLOPs of all 32 layers" in capsys.readouterr().err
