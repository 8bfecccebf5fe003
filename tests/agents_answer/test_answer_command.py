"""``python -m agents.decide --trainer ideal``: a page, JSON for programs, a line for bad input."""

import io
import json
from dataclasses import replace

import pytest

from agents.answer.config import Config
from agents.answer.reading import families_named, question_of
from agents.decide import decide_ideal, main
from agents.decision.training_job import TrainingJob
from des import GradientExchange, Plan, read_topology, simulate
from des.plan.plan_texts import parse_pipelines
from des.world.files.topology_writer import to_yaml

WORLD = replace(read_topology("east_central_west"), movement=None)
NAMES = [domain.name for domain in WORLD.domains]
JOB = ("--trainer", "ideal", "--model", "llama2_7b", "--microbatches", "8", "--across-only")
FEW = ("--network", "east_central_west", *JOB, "--deciders", "search", "--max-judged", "500")


@pytest.fixture
def asked(capsys):
    """Run the command and return its exit code and what it writes."""

    def run(*flags: str):
        return main([*FEW, *flags]), *capsys.readouterr()

    return run


def test_the_page_has_its_sections_and_the_table_its_families(asked):
    code, out, err = asked("--families", "all", "--last", "East*32")
    titles = [line for line in out.splitlines() if line and not line.startswith(" ")]

    assert (code, err) == (0, "")
    assert [title.split(",")[0].split(":")[0] for title in titles] == [
        "Answer",
        "Where",
        "Against the plan in force",
        "Best plan of each family",
        "Bottleneck",
        "What would change the answer",
    ]
    for family in ("pipeline ", "DiLoCo* ", "Streaming DiLoCo* "):
        assert f"\n  {family}" in out
    assert "paid after" in out
    assert "arXiv 2503.09799" in out


def test_the_answer_is_a_plan_that_takes_as_long_as_it_says_and_no_row_is_quicker(asked):
    answer = json.loads(asked("--json", "--families", "synchronous")[1])
    placements, shares, tree = parse_pipelines(answer["placement"], NAMES)
    plan = Plan(
        placement=placements[0],
        replicas=placements[1:],
        shares=shares,
        schedule=answer["schedule"],
        exchange=GradientExchange(
            bucket_bytes=answer["bucket_bytes"], tree=tree, sharded=answer["optimiser_sharded"]
        ),
    )
    job = TrainingJob(model="llama2_7b", num_sequences=8)
    found = simulate(WORLD, job.workload(answer["microbatch_size"]), plan)

    assert answer["iteration_s"] == found.makespan_s
    assert answer["wan_bytes"] == found.communication_cost_bytes
    assert answer["iteration_s"] == min(row["iteration_s"] for row in answer["families"])
    assert answer["tokens_per_s"] == 8 * 4096 / answer["iteration_s"]
    assert answer["change_s"] == 0.0
    assert {row["token_factor"] for row in answer["families"]} == {1.0}


def test_the_answer_is_never_worse_than_the_plan_in_force_or_the_policies(capsys):
    flags = [*FEW, "--json", "--last", "East*11,Central*11,West*10"]
    both = [*flags, "--deciders", "both"]
    by_search = json.loads((main(flags), capsys.readouterr().out)[1])
    by_both = json.loads((main(both), capsys.readouterr().out)[1])

    assert by_both["iteration_s"] <= by_search["iteration_s"]
    assert by_search["iteration_s"] <= by_search["change"]["present"]["iteration_s"]


def test_a_price_in_tokens_turns_the_answer_back_to_unchanged_training(asked):
    flags = ("--json", "--families", "all")
    free, dear = (json.loads(asked(*flags, "--token-factor", each)[1]) for each in ("1", "1000"))

    assert free["changes_training"]
    assert not dear["changes_training"]
    assert dear["at_par"]["iteration_s"] == free["iteration_s"]


def test_a_stream_answers_each_line_and_continues_after_a_wrong_one(capsys, monkeypatch):
    lines = ['{"loads": "East=0.5"}', "", '{"last": "Mars*32"}', '{"json": true}', "{}"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    code = main([*FEW, "--stream"])
    loaded, wrong, fixed, plain = map(json.loads, capsys.readouterr().out.splitlines())

    assert code == 2
    assert loaded["iteration_s"] > plain["iteration_s"]
    assert (wrong["line"], "Mars" in wrong["error"]) == (3, True)
    assert "json must be given on the command line" in fixed["error"]


def test_python_has_the_same_answer(asked):
    found = decide_ideal(WORLD, TrainingJob(model="llama2_7b", num_sequences=8), max_judged=500)
    question = question_of(
        Config(network="east_central_west", model="llama2_7b", microbatches=8, max_judged=500)
    )

    by_command = json.loads(asked("--json")[1])
    assert question.problem == found.question.problem
    assert (found.step_s, found.num_judged) == (by_command["iteration_s"], by_command["num_judged"])
    assert str(found).startswith("Answer: ")
    assert found._repr_html_().startswith("<h4>Answer: ")


def test_a_family_that_fits_nowhere_is_named_with_what_it_lacks(asked, tmp_path):
    """One of three copies that share the optimiser of 7 billion parameters needs 54 GB, not 52."""
    small = replace(
        WORLD, domains=tuple(replace(one, gpu_memory_bytes=6.5e9) for one in WORLD.domains)
    )
    path = tmp_path / "small.yaml"
    path.write_text(to_yaml(small), encoding="utf-8")
    network = ("--network", str(path))
    code, out, _ = asked(*network, "--families", "pipeline,replicas")

    assert code == 0
    assert "\n  replicas: no plan fits; at best, domain " in out
    assert "must hold at most 52.0 GB" in out
    code, out, err = asked(*network, "--families", "replicas")
    assert (code, out) == (2, "")
    assert "must hold at most 52.0 GB" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--families", "pipelines"], "--families must be synchronous, all, or some of single"),
        (["--families", "diloco", "--token-factor", "0"], "token_factor must be at least 1"),
        (["--token-factor", "2"], "token_factor must be left out where no family changes"),
        (["--job", "four_domains_0"], "--model must not be given with --job, got both"),
        (["--tokens-per-step", "1M"], "--microbatches must not be given with --tokens-per-step"),
        (["--compression", "0.5"], "compressions must be at least 1 and finite, got 0.5"),
        (["--last", "East*10"], "32 layers of llama2_7b, got 10"),
        (["--last", "East*32 | East*32"], "a domain must serve one replica"),
        (["--last", "East*32 x3 | West*32 x4"], "shares must add up to the 8 microbatches"),
        (["--loads", "Mars=0.5"], "unknown domain 'Mars'"),
        (
            ["--objective", "0,1,0"],
            "--objective must be time with --trainer ideal, or weights with",
        ),
        (["--at-most", "90 s"], "--at-most must not be given with --trainer ideal, got both"),
        (["--schedules", "1f1b"], "--schedules must not be given with --trainer ideal, got both"),
        (["--most-slowdown", "0"], "most_slowdown must be positive"),
        (["--max-judged", "0"], "max_judged"),
        (["--compression", "nan"], "compressions must be at least 1 and finite, got nan"),
        (["--compression", "2", "--families", "pipeline"], "token_factor must be given"),
        (["--last-schedule", "1f1b"], "--last must be given with --last-schedule, got none"),
        (["--last", "East*32", "--last-exchange", "diloco"], "--last-exchange must be every_step"),
        (["--last", "East*32 | West*32", "--last-bits", "4"], "--last-bits must be left out"),
        (["--last", "East*32", "--last-microbatch-size", "0"], "last_microbatch_size must be a"),
        (["--last", "East*32", "--last-compression", "0"], "activation_compression must be"),
        (["--last", "East*32 |"], "--last: placement: each item must be"),
        (["--out", "no_such_folder/page.txt"], "--out must be a file in a folder that exists"),
        (["--out", "page.txt", "--stream"], "--out must not be given with --stream, got both"),
        (["--microbatches", "200000"], "microbatches must be a whole number from 1 to 100000"),
        (["--checkpoint", "some.pt"], "--checkpoint must not be given with --deciders search"),
        (["--local-checkpoint", "a.pt"], "--local-checkpoint must not be given with --across-only"),
        (["--deciders", "hi_ppo", "--families", "all"], "--families must not be given with"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(asked, flags, message):
    code, out, err = asked(*flags)

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_tokens_that_no_microbatch_divides_are_refused(capsys):
    """No size is odd but 1, so only a file's own size can miss: 3 sequences in twos."""
    flags = ["--network", "east_central_west", "--trainer", "ideal", "--tokens-per-step", "1000"]

    assert main(flags) == 2
    assert "at least one sequence of 4096 tokens" in capsys.readouterr().err


def test_families_are_read_in_their_order_whatever_is_given():
    assert families_named("hybrid, single") == ("single", "hybrid")


@pytest.mark.parametrize(
    ("families", "exchange", "more"),
    [
        ("single", "every_step", ()),
        ("pipeline", "every_step", ()),
        ("pipeline", "every_step", ("--compression", "2", "--token-factor", "1")),
        ("replicas", "every_step", ()),
        ("hybrid", "every_step", ()),
        ("diloco", "diloco", ()),
        ("streaming_diloco", "streaming_diloco", ()),
    ],
)
def test_an_answer_that_is_given_back_as_the_plan_in_force_stays(asked, families, exchange, more):
    flags = ("--json", "--families", families, *more)
    first = json.loads(asked(*flags)[1])
    fields = {
        "": first["placement"],
        "-schedule": first["schedule"],
        "-exchange": exchange,
        "-microbatch-size": first["microbatch_size"],
        "-compression": first["activation_compression"],
    }
    if exchange != "every_step":
        fields["-bits"] = first["bits_per_value"]
    if first["bucket_bytes"] is not None:
        fields["-bucket-bytes"] = first["bucket_bytes"]
    again = json.loads(
        asked(*flags, *(f"--last{name}={value}" for name, value in fields.items()))[1]
    )

    assert again["change"]["present"]["iteration_s"] == first["iteration_s"]
    assert (again["change_s"], again["iteration_s"]) == (0.0, first["iteration_s"])


def test_families_without_borders_are_allowed_whatever_the_compression(asked):
    alone, both = (
        json.loads(asked("--json", "--families", "single,pipeline", "--compression", each)[1])
        for each in ("2", "1,2")
    )
    priced = [row for row in alone["families"] if row["family"] == "single"]

    assert alone["family"] == "single"
    assert priced == [row for row in both["families"] if row["family"] == "single"]
    assert [row["activation_compression"] for row in alone["families"]] == [2.0, 1.0]


@pytest.mark.parametrize("deciders", ["search", "both"])
def test_a_compression_alone_leaves_plain_pipelines_out(capsys, deciders):
    flags = [*FEW, "--compression", "2", "--families", "pipeline", "--token-factor", "1", "--json"]
    answer = json.loads((main([*flags, "--deciders", deciders]), capsys.readouterr().out)[1])

    assert {row["activation_compression"] for row in answer["families"]} == {2.0}


def test_policies_alone_count_no_plans_and_say_when_they_find_none(capsys, tmp_path):
    flags = ["--trainer", "ideal", "--model", "llama2_7b", "--deciders", "hi_ppo"]
    flags += ["--across-only", "--network"]
    code, page = main([*flags, "east_central_west"]), capsys.readouterr().out

    assert (code, "\nBest plan of each family\n" in page) == (0, True)
    assert "no bandwidth: no other plan is in the table" in page
    small = replace(
        WORLD, domains=tuple(replace(one, gpu_memory_bytes=1e9) for one in WORLD.domains)
    )
    path = tmp_path / "small.yaml"
    path.write_text(to_yaml(small), encoding="utf-8")
    assert main([*flags, str(path)]) == 2
    assert "the policies found no plan that fits" in capsys.readouterr().err
