"""Compare the simulator with published and measured figures: one command a table."""

from collections.abc import Callable, Sequence

from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import parse_command
from scenarios.reproduce import (
    blox,
    crosspipe,
    diloco,
    measured,
    megatron_bridge,
    real_runs,
    rivals,
    sailor,
    serving,
    zero_bubble,
)

PROG = "python -m scenarios.reproduce"
COMMANDS: dict[str, tuple[Callable[[Sequence[str] | None], int], str]] = {
    "zero_bubble": (zero_bubble.main, "bubble rates of pipeline schedules (Zero Bubble)"),
    "crosspipe": (crosspipe.main, "seconds per microbatch across data centres (CrossPipe)"),
    "diloco": (diloco.main, "bandwidth that synchronisation needs, per mode (Streaming DiLoCo)"),
    "sailor": (
        sailor.main,
        "iteration times of measured runs, from profiles alone (Sailor)",
    ),
    "measured": (
        measured.main,
        "times and memory of measured runs, from shapes of layers (vTrain, Korthikanti et al.)",
    ),
    "megatron_bridge": (
        megatron_bridge.main,
        "tokens per second of Megatron-Bridge on H100 to GB300 in BF16 to NVFP4",
    ),
    "real_runs": (
        real_runs.main,
        "steps of real PyTorch pipelines over emulated WAN links, by runtime and hosts",
    ),
    "rivals": (
        rivals.main,
        "plans of published programs (Sailor, DT-FM, CrossPipe) against ours of their names",
    ),
    "blox": (blox.main, "job times and rounds of a queue of jobs (Blox)"),
    "serving": (
        serving.main,
        "clusters, autoscalers and traces of inference (splitwise-sim, Vidur, DistServe, HPA, ...)",
    ),
}
"""The main function of each command, and what the command reproduces."""

_EPILOG = f"""\
--cases is a file of published figures; for sailor it is a folder of CSV files,
for measured, real_runs and blox one of JSON files, for megatron_bridge one of CSV files, for rivals
one of worlds, for serving one of cases.
Each but serving writes table.csv, table.md, report.html and picture.png to --out.

examples:
  {PROG} zero_bubble
  {PROG} sailor --out sailor

exit codes: 0 every bound that applies is met; 1 one is not; 2 bad input;
  {EXIT_CODES}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    name, arguments = parse_command(
        {name: about for name, (_, about) in COMMANDS.items()},
        argv,
        prog=PROG,
        description=__doc__,
        epilog=_EPILOG,
    )
    return COMMANDS[name][0](arguments)
