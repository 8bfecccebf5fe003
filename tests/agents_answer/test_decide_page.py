"""Page of the whole decision: every example is there, and a command prints what the page shows."""

import shlex
from pathlib import Path

import pytest

from agents.decide import main
from des.worlds import EXAMPLE_JOBS, EXAMPLES
from scenarios.run.page_outputs import shown_commands

ROOT = Path(__file__).resolve().parents[2]
SHOWN = shown_commands((ROOT / "docs/decide.md").read_text("utf-8"))
IDEAL = {line: output for line, output in SHOWN.items() if "--trainer ideal" in line}
CHEAP = "four_sites_1gbit_llama2_13b_1048k_tokens"
BOUND = "--network four_domains_1 --job four_domains_1"


def test_the_page_shows_every_example_with_its_sections():
    asked = [shlex.split(line)[2] for line in IDEAL]

    assert asked == list(EXAMPLES) == list(EXAMPLE_JOBS)
    for output in IDEAL.values():
        for title in ("Answer: ", "\nWhere\n", "\nBest plan of each kind", "\nBottleneck\n"):
            assert title in output


@pytest.mark.parametrize("flags", [f"--network {CHEAP} --job {CHEAP} --trainer ideal", BOUND])
def test_a_command_prints_what_the_page_shows(capsys, flags):
    (line, *_) = (line for line in SHOWN if line.startswith(f"agents.decide {flags}"))
    module, *given = shlex.split(line)

    assert module == "agents.decide"
    assert main(given) == 0
    assert capsys.readouterr().out == SHOWN[line]
