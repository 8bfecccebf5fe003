"""The command: rounds over a folder, the state over restarts, a replayed day, and hooks."""

import json
import re
import signal
from urllib.request import urlopen

import pytest
from processes import python, wait_until
from watch_folders import add_lines, begin, flags_of, state_of

from des.base.store_file import seal
from scenarios.watch.command import main


@pytest.fixture
def asked(tmp_path, capsys):
    """Run a round and return its exit code, its lines, and its warnings."""
    begin(tmp_path)
    flags, state = flags_of(tmp_path), ("--state", str(tmp_path / "state.json"))

    def run(*more: str):
        code = main([*flags, *(() if "--dry-run" in more else (*state, "--once")), *more])
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err.splitlines()

    return run


def test_rounds_go_on_where_the_last_one_ended(asked, tmp_path):
    """A first plan, then a site that is lost, then lines that are known: as one process."""
    code, (first,), _ = asked()
    own = state_of(tmp_path)["watch"]["in_force"]["sites"][0]["name"]
    add_lines(tmp_path, {"minute": 0, "site": own, "up": False})
    _, (moved,), _ = asked()
    _, (stayed,), warnings = asked()
    add_lines(tmp_path, *({"minute": one, "site": own, "up": one < 0} for one in (0, -1)))
    _, _, late = asked()

    assert code == 0
    assert " first, " in first
    assert " move, " in moved
    assert f"needs {own}, which the world does not have now" in moved
    assert " stay, " in stayed
    assert warnings == []
    assert late == [f"warning: {own}: 2 observations left out, newer ones are known"]
    assert state_of(tmp_path)["num_changes"] == 2


def test_wrong_files_and_lines_are_said_and_the_rest_counts(asked, tmp_path):
    add_lines(
        tmp_path,
        {"minute": 0, "link": "A->B", "bandwidth": "1Gbps"},
        {"minute": 0, "link": "A->Z", "bandwidth": "1Gbps"},
        {"minute": 1, "link": "A->B", "bandwidth": "-1Gbps"},
        {"minute": 1e9, "link": "A->B", "bandwidth": "1Gbps"},
    )
    folder = tmp_path / "in"
    (folder / "run.json").write_text('{"start": {"conn')
    (folder / "torn.jsonl").write_text('{"time": 17000')
    _, _, warnings = asked()
    text = "\n".join(warnings)

    for said in (
        "run.json: ",
        "unknown link 'A->Z'",
        "seen.jsonl: line 3: observation of A->B: bandwidth_bytes_per_s must be positive",
        "ahead of this clock",
        "A->B: stale, no measurement for 15.0 min",
    ):
        assert said in text, text
    assert "torn.jsonl" not in text
    (folder / "copy.json").write_text('{"start": {"conn')
    _, _, warnings = asked()
    assert any("copy.json: left out, it has the content of run.json" in one for one in warnings)


def test_a_recorded_day_is_replayed_by_its_times_with_a_picture(asked, tmp_path):
    add_lines(tmp_path, {"minute": 0, "link": "A->B", "bandwidth": "10Gbps"})
    _, (first, summary), _ = asked("--dry-run")
    assert summary.startswith("1 decisions over 0.00 s: 0 changes of plan")
    for name in "ABC":
        add_lines(
            tmp_path,
            {"minute": 11, "site": name, "up": name == "C"},
            {"minute": 60, "site": name, "up": True},
        )
    code, lines, _ = asked("--dry-run", "--picture", str(tmp_path / "day.png"))

    assert code == 0
    assert first == lines[0]
    assert " first, " in first
    assert lines[-1].startswith("3 decisions over 60.0 min:")
    assert (tmp_path / "day.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "state.json").exists()


def test_a_change_writes_a_launch_folder_and_runs_the_hook(asked, tmp_path):
    hook = f"cat > {tmp_path}/hook.json; echo $EASTWEST_ACTION $EASTWEST_LAUNCH > {tmp_path}/said"
    code, _, warnings = asked("--launch", str(tmp_path / "launches"), "--on-decision", hook)
    plan = json.loads((tmp_path / "launches" / "plan-0001" / "plan.json").read_text("utf-8"))

    assert (code, warnings) == (0, [])
    given = json.loads((tmp_path / "hook.json").read_text("utf-8"))
    assert given["plan"]["step_s"] == plan["step_s"]
    assert (tmp_path / "said").read_text() == f"first {tmp_path}/launches/plan-0001\n"
    _, _, warnings = asked("--on-decision", "exit 3")
    assert warnings == []
    assert state_of(tmp_path)["pending"] is None


def test_a_change_that_was_under_way_is_carried_out_by_the_next_process(asked, tmp_path):
    """A hook that ends the process is run again: the state says what was pending."""
    with python(
        *(
            "-m",
            "scenarios.watch",
            *flags_of(tmp_path),
            "--state",
            str(tmp_path / "state.json"),
            "--once",
        ),
        *("--on-decision", "kill -9 $PPID"),
    ) as process:
        assert process.wait() == -signal.SIGKILL
    assert state_of(tmp_path)["pending"]["action"] == "first"
    asked("--on-decision", f"echo $EASTWEST_ACTION >> {tmp_path}/said")

    assert (tmp_path / "said").read_text() == "first\n"
    assert state_of(tmp_path)["pending"] is None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "not readable as JSON"),
        (lambda text: "", "the file is empty"),
        (lambda text: text.replace('"num_changes": 1', '"num_changes": 2'), "seal must be"),
        (lambda text: text.replace('"version": 3', '"version": 2', 1), "format and version"),
        (lambda text: "{}", "format: must be given"),
    ],
)
def test_a_state_that_is_torn_or_was_changed_is_refused(asked, tmp_path, damage, message):
    asked()
    path = tmp_path / "state.json"
    path.write_text(damage(path.read_text("utf-8")), encoding="utf-8")
    damaged = path.read_bytes()
    code, lines, errors = asked()

    assert (code, lines) == (2, [])
    assert len(errors) == 1
    assert re.search(f"^error: --state .*({message})", errors[0]), errors
    assert path.read_bytes() == damaged


def test_a_sealed_state_that_lacks_a_part_is_refused_in_a_line(asked, tmp_path):
    asked()
    content = state_of(tmp_path)
    del content["watch"]["judged_s"], content["seal"]
    content["seal"] = seal((json.dumps(content, sort_keys=True),))
    (tmp_path / "state.json").write_text(json.dumps(content), encoding="utf-8")
    code, lines, (error,) = asked()

    assert (code, lines) == (2, [])
    assert "watch: must be of this version, got 'judged_s'" in error


def test_a_state_of_another_job_is_refused(asked, tmp_path):
    asked()
    code, lines, (error,) = asked("--microbatches", "16")

    assert (code, lines) == (2, [])
    assert "job must be the one of --network, --job and --trainer" in error


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--every", "60"), "--every must be a duration such as '24h'"),
        (("--listen", "9105"), "--listen 9105: cannot listen"),
        (("--picture", "day.png"), "--picture must be given with --dry-run"),
        (("--trainer", "deepspeed", "--launch", "x"), "trainer must be one of"),
        (("--from", "nowhere"), "--from must be a folder or an address"),
        (("--confidence", "1.5"), "confidence must be within"),
    ],
)
def test_wrong_flags_are_refused_before_anything_is_written(asked, tmp_path, flags, message):
    code, lines, errors = asked(*flags)

    assert (code, lines) == (2, [])
    assert message in errors[0]
    assert not (tmp_path / "state.json").exists()


def test_metrics_are_served_until_sigterm_ends_the_watch_in_order(tmp_path):
    begin(tmp_path)
    state, said, heard = (str(tmp_path / name) for name in ("state.json", "out", "err"))
    words = ["-m", "scenarios.watch", *flags_of(tmp_path), "--state", state, "--every", "1s"]
    with (
        open(said, "w") as out,
        open(heard, "w") as err,
        python(*words, "--listen", "127.0.0.1:0", stdout=out, stderr=err) as process,
    ):
        wait_until(lambda: "metrics at" in (tmp_path / "err").read_text(), process)
        wait_until(lambda: " stay, " in (tmp_path / "out").read_text(), process)
        address = (tmp_path / "err").read_text().split("metrics at ")[1].split()[0]
        with urlopen(address) as answer:
            text = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0

    assert 'eastwest_watch_decisions_total{action="first"} 1' in text
    assert "eastwest_watch_step_seconds 0." in text
