"""CPU seconds of the ASTRA-sim engine's commands, in turns with those of another checkout.

Both have their bytecode, as installed packages do; with ``--uncached`` Python compiles the modules
at every start. ``--only all-gather`` times the runs whose names contain that.

Example: ``git worktree add --detach ../old 3f2fa7c && python -m bench.astra_turns ../old``.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chakra.schema.protobuf.et_def_pb2 import ALL_GATHER, REDUCE_SCATTER, CollectiveCommType

from bench.astra_inputs import (
    Run,
    all_reduce,
    apart,
    at_random,
    dimensions,
    domains,
    one_late,
    pipeline,
)

HERE = Path(__file__).parents[1]


def runs() -> list[Run]:
    """Return the runs of the table in docs/trust.md."""
    ring, direct = all_reduce("ring"), all_reduce("direct")
    wide = replace(all_reduce("ring", 256), name="the same, 256 NPUs, splits 1", num_splits=1)
    two = dimensions(("Ring", 8, 50.0, 500.0), ("Switch", 8, 25.0, 5000.0))
    aware = replace(wide, backend="aware")
    under_switch = replace(aware, network=dimensions(("Switch", 256, 50.0, 500.0)))
    return [
        replace(all_reduce("ring", 4), name="start, 4 NPUs"),
        pipeline(32),
        pipeline(512),
        ring,
        replace(ring, name=f"{ring.name}, aware", backend="aware"),
        wide,
        apart(wide, "starts 1 us apart"),
        apart(aware, "starts 1 us apart, aware"),
        apart(under_switch, "starts 1 us apart, aware switch"),
        apart(replace(wide, num_splits=4), "starts 1 us apart, splits 4"),
        apart(wide, "starts 100 us apart", 100),
        apart(aware, "starts 100 us apart, aware", 100),
        apart(under_switch, "starts 100 us apart, aware switch", 100),
        apart(wide, "starts 10 us apart, the last first", -10),
        at_random(wide, "starts at random within 100 ms", 100_000),
        at_random(aware, "starts at random within 100 ms, aware", 100_000),
        at_random(under_switch, "starts at random within 100 ms, aware switch", 100_000),
        at_random(wide, "starts at random within 1 ms", 1000),
        at_random(aware, "starts at random within 1 ms, aware", 1000),
        one_late(wide, "one start 1 ms late", 1000),
        apart(replace(wide, num_splits=4), "starts 100 us apart, splits 4", 100),
        replace(ring, name="rings of 8, switches of 8, splits 16", network=two, num_splits=16),
        direct,
        replace(
            direct,
            name=f"{direct.name}, switch",
            network=dimensions(("Switch", 64, 50.0, 500.0)),
            backend="aware",
        ),
        domains(32, 1),
        domains(32, 4),
        *_one_way("all-gather", ALL_GATHER, wide),
        *_one_way("reduce-scatter", REDUCE_SCATTER, wide),
    ]


def _one_way(name: str, kind: CollectiveCommType, wide: Run) -> Iterator[Run]:
    """Rings of a collective of one round whose members start apart."""
    switch = replace(wide, network=dimensions(("Switch", 256, 50.0, 500.0)), backend="aware")
    networks = {"": wide, ", aware": replace(wide, backend="aware"), ", aware switch": switch}
    for network, run in networks.items():
        for step_us in (1, 100):
            yield apart(run, f"{name}, starts {step_us} us apart{network}", step_us, kind)
        yield at_random(run, f"{name}, starts at random within 100 ms{network}", 100_000, kind)
    yield apart(replace(wide, num_splits=4), f"{name}, starts 1 us apart, splits 4", 1, kind)


def cpu_s(checkout: Path, run: Run, folder: Path, *, cached: bool) -> float:
    """CPU seconds of the command of a checkout, from nothing to its exit.

    With ``cached`` Python keeps bytecode, in the folder of the run.
    """
    names = {
        "workload": "trace",
        "system": "system.json",
        "remote-memory": "remote_memory.json",
        "network": "network.yml",
        "comm-group": "groups.json",
    }
    flags = [f"--{flag}-configuration={folder / name}" for flag, name in names.items()]
    flags.append(f"--logging-folder={folder / 'log'}")
    settings = os.environ | {
        "PYTHONPATH": str(checkout / "astra-sim"),
        "PYTHONPYCACHEPREFIX": str(folder) if cached else "",
        "PYTHONDONTWRITEBYTECODE": "" if cached else "1",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", f"astra_sim.{run.backend}", *flags],
        env=settings,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(argv: Sequence[str] | None = None) -> int:
    """Print the least CPU seconds of both checkouts for each run, and their quotient."""
    parser = argparse.ArgumentParser(prog="python -m bench.astra_turns", description=__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--only", default="", help="part of the runs' names (default: all runs)")
    parser.add_argument("--uncached", action="store_true", help="keep no bytecode (default: kept)")
    flags = parser.parse_args(argv)
    if flags.rounds < 1 or not (flags.other / "astra-sim").is_dir():
        parser.error(
            f"must have --rounds of at least 1 and a checkout, got {flags.rounds} and {flags.other}"
        )
    chosen = [run for run in runs() if flags.only in run.name]
    if not chosen:
        parser.error(f"--only must be part of the name of a run, got {flags.only!r}")
    checkouts = (flags.other.resolve(), HERE)
    for run in chosen:
        with tempfile.TemporaryDirectory() as name:
            run.write(Path(name))
            turns = [
                [cpu_s(each, run, Path(name), cached=not flags.uncached) for each in checkouts]
                for _ in range(flags.rounds + 1)
            ][1:]  # the first fills caches
        before, now = (min(times) for times in zip(*turns, strict=True))
        print(f"{run.name:<70} {before:.3f} {now:.3f} {before / now:.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
