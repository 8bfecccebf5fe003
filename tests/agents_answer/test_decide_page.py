"""Page of the whole decision: every example is there, and a command prints what the page shows."""

import shlex
from pathlib import Path

from agents.decide import main
from des.worlds import EXAMPLE_JOBS, EXAMPLES
from scenarios.run.page_outputs import shown_commands

ROOT = Path(__file__).resolve().parents[2]
SHOWN = shown_commands((ROOT / "docs/decide.md").read_text("utf-8"))
CHEAP = "four_sites_1gbit_llama2_13b_1048k_tokens"


def test_the_page_shows_every_example_with_its_sections():
    asked = [shlex.split(line)[2] for line in SHOWN]

    assert asked == list(EXAMPLES) == list(EXAMPLE_JOBS)
    for output in SHOWN.values():
        for title in ("Answer: ", "\nWhere\n", "\nBest plan of each family", "\nBottleneck\n"):
            assert title in output


def test_a_command_prints_what_the_page_shows(capsys):
    (line,) = (line for line in SHOWN if f"--network {CHEAP} " in line)
    module, *flags = shlex.split(line)

    assert module == "agents.decide"
    assert main(flags) == 0
    assert capsys.readouterr().out == SHOWN[line]
