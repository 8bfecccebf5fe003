"""Running cases: every command a process, every case a folder that is gone afterwards."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.behaviour.cases import GOLDEN, Case
from bench.behaviour.normalised import normalised

TERMINAL = "terminal"
"""File of the exit codes and of what the commands printed."""

CHECKOUT = next(
    each for each in Path(__file__).resolve().parents if (each / "pyproject.toml").exists()
)
LIMIT_S = 1800.0
IN_TURN_MODULE = "bench.behaviour.in_turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Digests of one case by file, and the seconds that its commands took."""

    case: Case
    digests: dict[str, str]
    wall_s: float


def run_all(
    batches: list[list[Case]],
    golden: Path | None,
    keep: Path | None,
    num_workers: int,
    tell: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run cases, several batches at a time, and return their outcomes in the order of the cases.

    Parameters
    ----------
    batches
        Cases; those of a batch of several run in one process, one after the other.
    golden
        Folder of recorded figures, where cases need one.
    keep
        Folder for the normalised outputs, a folder per case.
    num_workers
        Batches that run at a time.
    tell
        Called with every outcome, in the order of the cases.
    """

    def run(batch: list[Case]) -> list[Outcome]:
        return run_batch(batch, golden, keep)

    outcomes = []
    with ThreadPoolExecutor(num_workers) as pool:
        for found in pool.map(run, batches):
            for outcome in found:
                tell(outcome)
                outcomes.append(outcome)
    return outcomes


def run_batch(batch: list[Case], golden: Path | None, keep: Path | None) -> list[Outcome]:
    """Run the commands of cases, each case in a new folder, and return the digests of its files."""
    begin_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="behaviour-") as name:
        whole = Path(name).resolve()
        folders = [whole / case.name for case in batch]
        for folder in folders:
            folder.mkdir(parents=True)
        if len(batch) > 1:
            _run_in_turn(batch, folders, golden)
        else:
            said = "".join(_run(each, folders[0], golden) for each in batch[0].commands)
            (folders[0] / TERMINAL).write_text(said, "utf-8")
        wall_s = (time.perf_counter() - begin_s) / len(batch)
        return [
            _outcome(case, folder, golden, keep, wall_s)
            for case, folder in zip(batch, folders, strict=True)
        ]


def _outcome(
    case: Case, folder: Path, golden: Path | None, keep: Path | None, wall_s: float
) -> Outcome:
    files = normalised(folder, case.name, _paths(folder, golden))
    if keep is not None:
        _keep(files, keep / case.name)
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    return Outcome(case=case, digests=digests, wall_s=wall_s)


def _run(command: tuple[str, ...], folder: Path, golden: Path | None) -> str:
    done = _process(["-m", *_arguments(command, golden)], folder, "")
    return _said(command, done.stdout, done.stderr, done.returncode)


def _run_in_turn(batch: list[Case], folders: list[Path], golden: Path | None) -> None:
    """Run cases of one command each in one process."""
    answer = folders[0].parent / "exit_codes.json"
    orders = [
        {
            "arguments": _arguments(case.commands[0], golden),
            "folder": str(folder),
            "output": f"{folder}.output",
            "errors": f"{folder}.errors",
        }
        for case, folder in zip(batch, folders, strict=True)
    ]
    done = _process(["-m", IN_TURN_MODULE, str(answer)], folders[0], json.dumps(orders))
    if done.returncode != 0:
        for case, folder in zip(batch, folders, strict=True):
            said = _said(case.commands[0], done.stdout, done.stderr, done.returncode)
            (folder / TERMINAL).write_text(f"{said}ended the process of {batch[0].name}\n", "utf-8")
        return
    codes = json.loads(answer.read_text("utf-8"))
    for case, folder, code in zip(batch, folders, codes, strict=True):
        output, errors = (
            Path(f"{folder}.{end}").read_text("utf-8") for end in ("output", "errors")
        )
        said = _said(case.commands[0], output, errors, code)
        (folder / TERMINAL).write_text(said, "utf-8")


def _arguments(command: tuple[str, ...], golden: Path | None) -> list[str]:
    return [each.replace(GOLDEN, str(golden)) for each in command]


def _process(arguments: list[str], folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=_environment(),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def _said(command: tuple[str, ...], output: str, errors: str, code: int) -> str:
    return f"$ {' '.join(command)}\n{output}--- errors\n{errors}--- exit code {code}\n"


def _environment() -> Mapping[str, str]:
    """Return an environment in which commands take this checkout and print alike everywhere."""
    kept = {name: value for name, value in os.environ.items() if name != "ASTRA_SIM_BIN"}
    return kept | {
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "astra-sim")]),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "COLUMNS": "120",
        "TERM": "dumb",
        "CUDA_VISIBLE_DEVICES": "",
    }


def _paths(folder: Path, golden: Path | None) -> dict[str, str]:
    """Return the folders of this machine, and what stands for them in texts."""
    paths = {str(folder): "<here>", str(CHECKOUT): "<checkout>", sys.prefix: "<installation>"}
    return paths if golden is None else paths | {str(golden): GOLDEN}


def _keep(files: Mapping[str, bytes], folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    for name, contents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
