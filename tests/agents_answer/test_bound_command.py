"""``python -m agents.decide`` with a trainer: flags, plans in force as files, streams, refusals."""

import io
import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from bound_cases import site, sites
from profiled import write_profile

from agents.decide import main
from agents.decision.plan_document import read_document
from des import simulate
from des.world.files.topology_writer import to_yaml
from des.world.kernel_figures import FITTED_KERNELS
from scenarios.run.decide_command import main as decide_with_report

JOB = ("--model", "llama2_7b", "--microbatches", "8")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Flags of two sites of a server each in a file."""
    path = tmp_path_factory.mktemp("world") / "now.yaml"
    path.write_text(to_yaml(sites(site("A", 8), site("B", 8))), encoding="utf-8")
    return ("--network", str(path), *JOB)


@pytest.fixture
def asked(capsys, network):
    """Run the command and return its exit code and what it writes."""

    def run(*flags: str):
        return main([*network, *flags]), *capsys.readouterr()

    return run


@pytest.fixture
def kept(asked, tmp_path):
    """A plan of the command in a file."""
    path = tmp_path / "plan.json"
    assert asked("--json", "--out", str(path))[0] == 0
    return path


def test_the_plan_in_a_file_is_repeated_and_stays_where_it_is_in_force(asked, kept):
    bound = read_document(json.loads(kept.read_text("utf-8")))
    code, out, err = asked("--last", str(kept), "--json")
    change = json.loads(out)["answer"]["change"]

    assert (code, err) == (0, "")
    assert simulate(bound.topology, bound.workload, bound.plan).makespan_s == bound.step_s
    assert change == {
        "present_s": bound.step_s,
        "num_bytes": 0.0,
        "change_s": 0.0,
        "misfit": "",
    }
    assert "it is the answer and stays" in asked("--last", str(kept))[1]


def test_a_profile_of_the_times_of_shapes_gives_the_answer_of_shapes(asked, tmp_path):
    """Its points are of two tensor degrees, so no other is searched: the answer has one of them."""
    profile = tmp_path / "measured.csv"
    write_profile(profile, replace(site("A"), kernels=FITTED_KERNELS), "llama2_7b")
    flags = ("--json", "--profile", str(profile), "--profile-gpu", "h100")

    code, out, err = asked(*flags)
    document = json.loads(out)
    bound = read_document(document)
    shaped = replace(
        bound.topology, domains=tuple(replace(one, profile=None) for one in bound.topology.domains)
    )

    assert (code, err) == (0, "")
    assert set(document["answer"]["layer_times"].values()) == {"profile measured.csv of h100"}
    assert {one.tensor for one in bound.plan.parallelism} <= {1, 2}
    assert simulate(shaped, bound.workload, bound.plan).makespan_s == pytest.approx(bound.step_s)
    assert "layer times: profile measured.csv of h100" in asked(*flags[1:])[1]


def test_a_profile_without_times_of_the_job_is_refused(asked, tmp_path):
    profile = tmp_path / "measured.csv"
    write_profile(profile, replace(site("A"), kernels=FITTED_KERNELS), "llama2_7b")
    flags = ("--profile", str(profile), "--profile-gpu", "h100", "--sequence-length", "8192")

    code, out, err = asked(*flags)

    assert (code, out) == (2, "")
    assert "profiles: must have times at 8192 tokens for one of these tensor degrees x" in err


def test_layers_that_are_not_the_models_own_and_other_precisions_are_said(asked):
    page = asked("--num-layers", "16", "--sequence-length", "1024")[1]

    assert "num_layers 16: parameters and FLOPs of all 32 layers of llama2_7b are div" in page
    assert "layer times: FLOPs at 0.5 of the peak" in page
    code, _, err = asked("--precision", "fp8")
    assert code == 2
    assert "precision must be bf16, as its peak in others is that of a kind of GPU" in err
    assert (
        "precision must be one of bf16; got fp8"
        in asked("--precision", "fp8", "--trainer", "deepspeed")[2]
    )


def test_loads_of_other_jobs_slow_a_site_down(asked):
    """With half of both sites taken a step takes longer; with half of one the other is as quick."""
    free, both, one = (
        json.loads(asked("--json", *more)[1])
        for more in ((), ("--loads", "A=0.5,B=0.5"), ("--loads", "A=0.5"))
    )

    assert free["step_s"] == one["step_s"] < both["step_s"]
    assert [each["name"] for each in one["sites"]] == ["B"]


def test_a_stream_answers_each_line_and_continues_after_a_wrong_one(network, capsys, monkeypatch):
    lines = ['{"loads": "A=0.5,B=0.5"}', '{"explain": true}', '{"last": "A*32"}', "{}"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    code = main([*network, "--stream"])
    loaded, ideal, text, plain = map(json.loads, capsys.readouterr().out.splitlines())

    assert code == 2
    assert loaded["step_s"] > plain["step_s"]
    assert plain["answer"]["other_trainers"] == []
    assert (ideal["line"], "--explain must be given with" in ideal["error"]) == (2, True)
    assert "--last must be a plan document" in text["error"]


def test_a_stream_keeps_its_answer_until_a_move_pays(network, capsys, monkeypatch):
    """As `eastwest decide`: a site half loaded is left in a day, not in a minute, and for ever."""
    actions = {}
    lines = ["{}", '{"loads": "SITE=0.5"}', "{}"]
    for horizon in ("1d", "1min"):
        monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
        assert decide_with_report([*network, "--stream"]) == 0
        (first,) = map(json.loads, capsys.readouterr().out.splitlines())
        text = "\n".join(lines).replace("SITE", first["sites"][0]["name"])
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert decide_with_report([*network, "--stream", "--horizon", horizon]) == 0
        found = list(map(json.loads, capsys.readouterr().out.splitlines()))
        actions[horizon] = [one["answer"]["verdict"]["action"] for one in found]
        for before, one in pairwise(found):
            if one["answer"]["verdict"]["action"] == "stay":
                assert one["plan"] == before["plan"]

    assert actions == {"1d": ["first", "move", "stay"], "1min": ["first", "stay", "stay"]}


def test_a_site_that_is_gone_in_a_line_is_left(network, tmp_path, capsys, monkeypatch):
    alone = tmp_path / "alone.yaml"
    alone.write_text(to_yaml(sites(site("B", 8))), encoding="utf-8")
    lines = ['{"loads": "B=0.5"}', json.dumps({"network": str(alone)})]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))

    assert main([*network, "--stream"]) == 0
    verdict = json.loads(capsys.readouterr().out.splitlines()[1])["answer"]["verdict"]
    assert verdict["action"] == "move"
    assert "needs A, which the world does not have now" in verdict["why"]


def test_a_size_that_a_job_names_and_what_tokens_are_rounded_to_are_said(asked, capsys, network):
    tokens = [*network[:2], "--model", "llama2_7b", "--tokens-per-step", "30000"]

    assert main([*tokens, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["answer"]["notes"]
    assert note.startswith("30000 tokens a step are rounded to 7 sequences of 4096")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--schedules", "zb_auto"], "megatron"),
        (["--trainer", "mosaic"], "trainer: must be one of megatron, torchtitan"),
        (
            ["--checkpoint", "some.safetensors"],
            "--checkpoint must not be given with --deciders search",
        ),
        (
            ["--deciders", "both", "--checkpoint", "none.safetensors"],
            "none.safetensors",
        ),
        (["--explain"], "--explain must be given with --trainer ideal --deciders hi_ppo --json"),
        (
            ["--last", "A*32"],
            "--last must be a plan document, as --json writes it, such as plan.js",
        ),
        (["--last", "none.json"], "none.json"),
        (["--objective", "speed"], "objective: must be time, cost, or three weights"),
        (["--objective", "cost"], "prices of GPUs must be given in the network"),
        (["--at-most", "soon"], "at_most: must be a time or a cost of a step above 0"),
        (["--at-most", "1e-3 s"], "at_most: must be at least "),
        (["--model", "llama3_405b"], "no plan fits llama3_405b on 2 sites; at best a GPU lacks "),
        (["--loads", "Mars=0.5"], "unknown domain 'Mars'"),
        (["--tokens-per-step", "1M"], "--microbatches must not be given with --tokens-per-step"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(asked, flags, message):
    code, out, err = asked(*flags)

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_schedule_that_a_trainer_does_not_have_is_refused_with_those_that_it_has(asked):
    error = asked("--schedules", "zb_auto")[2]

    assert "1f1b, interleaved_1f1b" in error
    assert "zb_auto" in error


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--network", "east_central_west", *JOB), "world must have the domains East, Central"),
        (("--microbatches", "16"), "job must be the one to decide on, llama2_7b of 32 layers with"),
        (("--model", "llama2_13b"), "job must be the one to decide on, llama2_13b of 40 layers"),
    ],
)
def test_a_plan_in_force_of_another_world_or_job_is_refused(asked, kept, flags, message):
    code, out, err = asked(*flags, "--last", str(kept))

    assert (code, out) == (2, "")
    assert f"{kept.name}: {message}" in err


@pytest.mark.parametrize("columns", [50, 70])
def test_tables_fit_the_terminal_that_shows_them(network, monkeypatch, columns):
    """A pipe and a file have them whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    pipe, terminal = io.StringIO(), io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    for out in (pipe, terminal):
        monkeypatch.setattr("sys.stdout", out)
        assert main(list(network)) == 0

    head = next(line for line in pipe.getvalue().splitlines() if line.startswith("  kind  "))
    names = [each for each in re.split(r" {2,}", head.strip()) if each]
    shown = terminal.getvalue().splitlines()
    fitted = next(line for line in shown if line.startswith("  kind  "))
    assert len(head) > columns >= len(fitted)
    last = names[len(re.split(r" {2,}", fitted.strip())) :]
    assert any(
        f"left out at {columns} columns: {', '.join(last)}; COLUMNS=" in line for line in shown
    )
