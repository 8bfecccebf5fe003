"""The one entry: its help and errors, documents of ``--json``, spelling, completion in a shell."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.entry import command
from scenarios.entry.command import main
from scenarios.entry.completion import SCRIPTS, completions
from scenarios.entry.table import COMMANDS, Command

ROOT = Path(__file__).resolve().parents[2]
MOST_HELP_S = 0.3
"""CPU time of the help: it loads no command."""

_CPU_OF_HELP = """
import io, contextlib, resource, sys
from scenarios.entry import command
from scenarios.entry.command import main
with contextlib.redirect_stdout(io.StringIO()):
    assert main(["--help"]) == 0
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, sorted({"numpy", "tyro", "torch"} & set(sys.modules)))
"""


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


def test_the_help_lists_every_command_in_a_line(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out

    for each in COMMANDS:
        assert f"  {each.name} " in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith("usage: eastwest ")
    assert main(["-h"], prog="python -m scenarios") == 0
    assert capsys.readouterr().out.startswith("usage: python -m scenarios ")


def test_the_help_loads_nothing_and_is_quick():
    done = subprocess.run(
        [sys.executable, "-c", _CPU_OF_HELP], capture_output=True, text=True, check=True, cwd=ROOT
    )
    used_s, loaded = done.stdout.split(maxsplit=1)

    assert loaded.strip() == "[]"
    assert float(used_s) < MOST_HELP_S


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["simlate"], "error: eastwest: unknown command 'simlate'; did you mean 'simulate'?\n"),
        (
            ["kpi", "--seed", "-1"],
            "error: eastwest kpi: seed must be at least 0, got -1\n",
        ),
    ],
)
def test_bad_input_is_one_line_with_the_name_that_was_typed(argv, line, capsys):
    assert main(argv) == 2
    assert capsys.readouterr() == ("", line)


def test_a_command_has_the_name_that_was_typed_and_that_of_its_module(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["training_run", "--help"])
    shown = capsys.readouterr().out

    assert shown.startswith("usage: eastwest run ")
    assert "python -m scenarios.training_run" not in shown


def test_json_is_one_document_on_standard_output(tmp_path, capsys):
    flags = ["--model", "llama2_7b", "--placement", "0*16,1*16", "--microbatches", "4"]
    assert main(["simulate", *flags, "--out", str(tmp_path / "one"), "--json"]) == 0
    shown = capsys.readouterr()
    said = json.loads(shown.out)
    kept = json.loads((tmp_path / "one" / "result.json").read_text())

    assert {name: said[name] for name in kept} == kept
    assert f"{tmp_path}/one/result.json" in said["files"]
    assert "iteration time" in shown.err

    assert main(["simulate", "--placement", "0*1", "--out", str(tmp_path / "two"), "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["comp"], ["compare", "compare-seeds", "completion"]),
        (["devices", "pl"], ["place"]),
        (["devices", "place", "--po"], ["--policy"]),
        (["devices", "place", "--policy", "s"], ["single-numa"]),
        (["kpi", "--q"], ["--quick", "--quiet"]),
        (["decide", "--deciders", ""], ["both", "search", "hi_ppo"]),
        (["simulate", "--network", ""], []),
        (["nothing", "--x"], []),
    ],
)
def test_words_of_a_command_line_are_completed(words, found):
    assert completions(words) == found


def test_the_script_for_bash_asks_the_command_itself(tmp_path):
    """With the console script of this Python in front of the path."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    program = tmp_path / "eastwest"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m scenarios "$@"\n')
    program.chmod(0o755)
    line = "COMP_WORDS=(eastwest devices gro); COMP_CWORD=2; _eastwest; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        [bash, "-c", f"{SCRIPTS['bash']}\n{line}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )

    assert done.stdout.split() == ["group"]
    assert "compdef _eastwest eastwest" in SCRIPTS["zsh"]


def test_a_command_of_a_missing_extra_says_how_to_get_it(monkeypatch, capsys):
    row = Command(name="gaze", module="scenarios.gaze", about="Gaze", extra="gazing")
    monkeypatch.setattr(command, "COMMANDS", (*COMMANDS, row))

    assert main(["gaze"]) == 2
    expected = "error: gaze needs the extra [gazing]: pip install 'eastwest[gazing]'\n"
    assert capsys.readouterr() == ("", expected)
