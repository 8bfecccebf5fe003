"""A program in the place of ASTRA-sim's, which behaves or misbehaves in a chosen way.

    python fake_astra_sim.py WAY [flags of ASTRA-sim]

Run as a process by the tests of calibration; nothing here is collected.
"""

import os
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import yaml

LINE = "[2026-01-01 00:00:00.000] [workload] [info] sys[{}] finished, {} cycles, exposed {}"
FOR_EVER = [sys.executable, "-c", "import threading; threading.Event().wait()"]


def flag(name: str) -> str:
    """Value of a flag."""
    prefix = f"--{name}="
    return next(word.removeprefix(prefix) for word in sys.argv if word.startswith(prefix))


def lines(cycles: int = 5000) -> list[str]:
    """A finish line for every trace."""
    prefix = Path(flag("workload-configuration"))
    num_npus = len(list(prefix.parent.glob(f"{prefix.name}.*.et")))
    exposed = "communication 10 cycles."
    return [LINE.format(rank, cycles + rank, exposed) for rank in range(num_npus)]


def say(*texts: str) -> None:
    """Print lines at once."""
    sys.stdout.write("".join(f"{text}\n" for text in texts))
    sys.stdout.flush()


def run_engine(backend: str) -> None:
    """Be our own command; the process ends with its exit code."""
    runpy.run_module(f"astra_sim.{backend}", run_name="__main__", alter_sys=True)


def run_congested() -> None:
    """Be our own engine on a network that turns out to have half the bandwidth."""
    network = Path(flag("network-configuration"))
    content = yaml.safe_load(network.read_text("utf-8"))
    content["bandwidth"] = [each / 2.0 for each in content["bandwidth"]]
    slow = network.with_name("congested.yml")
    slow.write_text(yaml.safe_dump(content), "utf-8")
    sys.argv = [word for word in sys.argv if not word.startswith("--network-configuration=")]
    sys.argv.append(f"--network-configuration={slow}")
    run_engine("aware")


def hang(finished: list[str]) -> None:
    """Begin well, then wait for a program that never ends."""
    say(*finished[:-1])
    subprocess.run(FOR_EVER, check=False)


def linger(finished: list[str]) -> None:
    """Say all, but do not end."""
    say(*finished)
    os.close(1)
    os.close(2)
    subprocess.run(FOR_EVER, check=False)


def crash(finished: list[str]) -> None:
    """Die before anything is said."""
    sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def crash_while_exiting(finished: list[str]) -> None:
    """Die after everything is said, as the original does where there are several groups."""
    with suppress(SystemExit):
        run_engine("unaware")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGABRT)


def fail_late(finished: list[str]) -> None:
    """Say all, and yet fail."""
    say(*finished)
    sys.exit(3)


def leave_behind(finished: list[str]) -> None:
    """Do all as it should be, but leave a program behind that holds no output of ours."""
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    left = subprocess.Popen(FOR_EVER, **silent)
    Path(os.environ["LEFT_BEHIND"]).write_text(str(left.pid), "utf-8")
    run_engine("unaware")


def implausible(finished: list[str]) -> None:
    """Say all, in figures that do not leave time for the computations."""
    say(*finished)


def no_time(finished: list[str]) -> None:
    """Let a rank end at once."""
    say(*finished[:-1], LINE.format(len(finished) - 1, 0, "communication 0 cycles."))


def full_disk(finished: list[str]) -> None:
    """Give up as there is no room for a log."""
    sys.stderr.write("log/log.log: No space left on device\n")
    sys.exit(1)


def garbage(finished: list[str]) -> None:
    """Write bytes that are no text."""
    sys.stdout.buffer.write(bytes(range(256)) * 100)


def silence(finished: list[str]) -> None:
    """Do nothing, successfully."""


def partial(finished: list[str]) -> None:
    """Leave a rank out."""
    say(*finished[:-1])


def torn(finished: list[str]) -> None:
    """Break off in the middle of the last line."""
    say(*finished[:-1], finished[-1][:-18])


def duplicate(finished: list[str]) -> None:
    """Say a line twice."""
    say(*finished, finished[0])


def contradiction(finished: list[str]) -> None:
    """Say two things of every rank."""
    say(*finished, *lines(cycles=6000))


def stranger(finished: list[str]) -> None:
    """Speak of a rank that is not there."""
    say(*finished, LINE.format(len(finished), 1, "communication 1 cycles."))


def impossible(finished: list[str]) -> None:
    """Let a rank wait longer than it runs."""
    say(*finished[:-1], LINE.format(len(finished) - 1, 5, "communication 6 cycles."))


def babble(finished: list[str]) -> None:
    """Never stop talking."""
    while True:
        say("x" * 100_000)


MISBEHAVIOUR = {
    each.__name__.replace("_", "-"): each
    for each in (
        hang,
        linger,
        crash,
        crash_while_exiting,
        fail_late,
        leave_behind,
        implausible,
        no_time,
        full_disk,
        garbage,
        silence,
        partial,
        torn,
        duplicate,
        contradiction,
        stranger,
        impossible,
        babble,
    )
}


def main() -> None:
    """Take the way from the command line and go it."""
    way = sys.argv.pop(1)
    if way in ("unaware", "aware"):
        run_engine(way)
    elif way == "congested":
        run_congested()
    elif way == "crash-once":
        marker = Path("has-crashed")
        if not marker.exists():
            marker.touch()
            crash([])
        run_engine("unaware")
    else:
        MISBEHAVIOUR[way](lines())


if __name__ == "__main__":
    main()
