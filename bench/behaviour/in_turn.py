"""Command lines one after the other in one process: the packages that they share load once.

Reads a JSON list from standard input: arguments of ``python -m``, the folder to run in, and the
files for what is printed. Each command still runs as ``__main__`` with its own arguments. The exit
codes are written to the file that is named as the only argument.
"""

import json
import os
import runpy
import sys
import traceback
from pathlib import Path


def run_in_turn(orders: list[dict[str, str | list[str]]]) -> list[int]:
    """Run every order in its folder and return the exit codes."""
    codes = []
    for order in orders:
        os.chdir(str(order["folder"]))
        for descriptor, name in ((1, "output"), (2, "errors")):
            target = os.open(str(order[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, descriptor)
            os.close(target)
        codes.append(_exit_code(list(order["arguments"])))
        sys.stdout.flush()
        sys.stderr.flush()
    return codes


def _exit_code(arguments: list[str]) -> int:
    """Run one module as the interpreter would, and return what it would end with."""
    sys.argv = arguments
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001 - as the interpreter does: print it, end with 1
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    answer = Path(sys.argv[1])
    answer.write_text(json.dumps(run_in_turn(json.load(sys.stdin))), "utf-8")
