"""Page of decisions: its table has every example, with what its command prints."""

import re
import shlex
from pathlib import Path

import pytest

from agents.decide import main
from des.worlds import EXAMPLE_JOBS, EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/decide.md").read_text("utf-8")
FOUND = re.findall(r"(?m)^\| `(four_\w+)` \| (.+ domain|pipeline) \| (.+) \|$", PAGE)
ROWS = {name: [kind, *rest.split(" | ")] for name, kind, rest in FOUND}
"""Rows of the table of examples: kind, step, plan, schedule, distance, Megatron-LM's step."""
CHEAP = "four_sites_1gbit_llama2_13b_1048k_tokens"


def ideal(name: str) -> str:
    """Flags of an example among perfect devices."""
    return f"--network {name} --job {name} --trainer ideal"


def test_the_table_has_every_example():
    assert list(ROWS) == list(EXAMPLES) == list(EXAMPLE_JOBS)


@pytest.mark.parametrize(
    "name", [name if name == CHEAP else pytest.param(name, marks=pytest.mark.soak) for name in ROWS]
)
def test_a_row_of_the_table_has_what_its_command_prints(capsys, name):
    kind, step_s, plan, schedule, over, megatron_s = (cell.strip("`") for cell in ROWS[name])

    assert main(shlex.split(ideal(name))) == 0
    printed = capsys.readouterr().out
    for text in (
        f"Answer: {kind}\n  {step_s} s a step, ",
        f"schedule {schedule}, ",
        f"  as text: {plan}\n",
        f": {over} over the bound\n",
        f"\n  Megatron-LM: {megatron_s} s a step, ",
    ):
        assert text in printed
