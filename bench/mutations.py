"""Mutation check of the tests: ``python -m bench.mutations --count 40 --seed 0``.

Single mutations drawn at random (an operator, a constant, a branch), each made in a temporary copy
and run against the tests of its room and, where all of these pass, against the others of its
package, until one fails. Rows are appended to a file; a run with the same file leaves out what it
has.
"""

import argparse
import ast
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("des", "agents", "calibration")

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And},
}
_NO_TESTS = 5  # exit code of pytest where it finds none

Kind = Literal["operator", "constant", "branch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """Another text in the place of an expression of a module, ``start`` bytes from its begin."""

    path: str
    line: int
    start: int
    kind: Kind
    before: str
    after: str


def mutations_of(path: str, source: str) -> Iterator[Mutation]:
    """Yield all single mutations of a module, without those of texts and of types."""
    content = source.encode()
    starts = [0, *accumulate(len(line) + 1 for line in content.split(b"\n"))]
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        for kind, old, new in _changes(node):
            begin = starts[old.lineno - 1] + old.col_offset
            end = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
            before, after = content[begin:end].decode(), f"({ast.unparse(new)})"
            yield Mutation(
                path=path, line=old.lineno, start=begin, kind=kind, before=before, after=after
            )
        nodes += list(_code_below(node))[::-1]


def _changes(node: ast.AST) -> Iterator[tuple[Kind, ast.expr, ast.expr]]:
    """Nodes that another can take the place of, and these."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "branch", node.test, ast.UnaryOp(op=ast.Not(), operand=node.test)
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OTHER:
        other = copy.copy(node)
        other.op = _OTHER[type(node.op)]()  # type: ignore[assignment]
        yield "operator", node, other
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER:
        first: ast.cmpop = _OTHER[type(node.ops[0])]()  # type: ignore[assignment]
        yield "operator", node, ast.Compare(node.left, [first, *node.ops[1:]], node.comparators)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        yield "constant", node, ast.Constant(not value if isinstance(value, bool) else value + 1)


def _code_below(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes right below one that run: no types, and no parts of texts, which have no place.

    Nor decorators: ``frozen=True`` and its like are for readers and type checks.
    """
    left_out = {"annotation", "returns", "decorator_list"}
    if isinstance(node, ast.JoinedStr):
        left_out = {"values"}
    for name, value in ast.iter_fields(node):
        if name not in left_out:
            every = value if isinstance(value, list) else [value]
            yield from (one for one in every if isinstance(one, ast.AST))


def mutated(source: str, mutation: Mutation) -> str:
    """Return the source of a module with a mutation."""
    content, before, at = source.encode(), mutation.before.encode(), mutation.start
    if content[at : at + len(before)] != before:
        raise ValueError(f"{mutation.path}: byte {at} must begin {mutation.before!r}")
    return (content[:at] + mutation.after.encode() + content[at + len(before) :]).decode()


def drawn_mutations(root: Path, count: int, rng: np.random.Generator) -> list[Mutation]:
    """Draw mutations of the packages, all alike probable, in the order in which they are made."""
    every = [
        mutation
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        for mutation in mutations_of(path.relative_to(root).as_posix(), path.read_text("utf-8"))
    ]
    return [every[at] for at in rng.permutation(len(every))[:count].tolist()]


def own_and_other_tests(root: Path, path: str) -> tuple[list[Path], list[Path]]:
    """Examples of a module and folders with tests of its room, and those of its package's others.

    Two lists for two runs, as pytest imports all modules of tests before it runs the first test.
    """
    package, *rooms = Path(path).parent.parts
    names = ["_".join((package, *rooms[:size])) for size in range(len(rooms), 0, -1)]
    every = sorted(one for one in (root / "tests").glob(f"{package}_*") if one.is_dir())
    own = [root / "tests" / name for name in names if root / "tests" / name in every]
    return [root / path, *own], [one for one in every if one not in own]


def outcome_of(mutation: Mutation, root: Path, limit_s: float) -> dict[str, str]:
    """Whether a mutation, made in a copy, is killed or survived, and by which test.

    A test that fails without the mutation too is an error.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        for one in filter(None, listed.stdout.decode().split("\0")):
            (folder / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / one, folder / one)
        source = (folder / mutation.path).read_text("utf-8")
        (folder / mutation.path).write_text(mutated(source, mutation), "utf-8")
        end_s, failed = time.monotonic() + limit_s, ""
        try:
            for tests in own_and_other_tests(folder, mutation.path):
                if tests and not failed:
                    names = [one.as_posix() for one in tests]
                    failed = _failed_test(folder, names, end_s - time.monotonic())
        except subprocess.TimeoutExpired:
            return {"outcome": "timed out", "by": ""}
        except subprocess.CalledProcessError as died:
            return {"outcome": "killed", "by": f"signal {-died.returncode}"}
        (folder / mutation.path).write_text(source, "utf-8")
        if failed and _failed_test(folder, [failed], limit_s):
            raise ValueError(f"{failed}: must pass without a mutation, but fails in a copy")
    return {"outcome": "killed" if failed else "survived", "by": failed}


def _failed_test(folder: Path, tests: Sequence[str], limit_s: float) -> str:
    """First test that fails, or module that cannot be imported; empty where all pass."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}:{folder}/astra-sim"},
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
    if ended.returncode < 0:  # compiled code wrote to a place that is not its own
        ended.check_returncode()
    if ended.returncode in (0, _NO_TESTS):
        return ""
    said = [one for one in ended.stdout.splitlines() if one.startswith(("FAILED ", "ERROR "))]
    if not said:
        raise ValueError(f"pytest: must run {tests[0]}, got\n{ended.stdout}{ended.stderr}")
    return said[-1].partition(" ")[2].partition(" - ")[0]


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Draw mutations, run the tests on each that has no row yet, and print the share killed."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutations", description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="mutations (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: 0)")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop then (default: 600)")
    parser.add_argument("--limit", type=float, default=60.0, help="minutes of one (default: 60)")
    parser.add_argument("--out", type=Path, default=Path("runs/mutations.jsonl"), help="rows")
    config = parser.parse_args(argv)
    end_s, limit_s = time.monotonic() + 60.0 * config.minutes, 60.0 * config.limit
    config.out.parent.mkdir(parents=True, exist_ok=True)
    lines = config.out.read_text("utf-8").splitlines() if config.out.exists() else []
    known = {(row["path"], row["start"], row["after"]): row for row in map(json.loads, lines)}
    counts = dict.fromkeys(("killed", "survived", "timed out"), 0)
    for mutation in drawn_mutations(root, config.count, np.random.default_rng(config.seed)):
        key = mutation.path, mutation.start, mutation.after
        left_s = end_s - time.monotonic()
        if key not in known and left_s > 0.0:
            row = asdict(mutation) | outcome_of(mutation, root, min(left_s, limit_s))
            if row["outcome"] == "timed out" and left_s < limit_s:
                continue  # cut short by the time of all
            known[key] = row
            with config.out.open("a", encoding="utf-8") as rows:
                rows.write(json.dumps(row) + "\n")
        if key in known:
            row = known[key]
            counts[row["outcome"]] += 1
            place, change = f"{mutation.path}:{mutation.line}", f"{mutation.before} -> "
            print(f"{row['outcome']:9} {place} {change}{mutation.after}  {row['by']}", flush=True)
    print(", ".join(f"{number} {name}" for name, number in counts.items()), f"of {config.count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
