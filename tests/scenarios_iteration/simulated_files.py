"""The command on a few microbatches, and what it writes."""

import json

from scenarios.iteration.command import main

FILES = [
    "links.csv",
    "memory_over_time.csv",
    "report.html",
    "result.json",
    "spans.csv",
    "stages.csv",
    "trace.json",
]
PICTURES = ["gantt.png", "links.png", "map.png", "memory.png"]
QUICK = ["--microbatches", "4"]
SMALL = ["--model", "llama2_7b"]  # fits into any of the domains


def run(folder, *flags):
    """Run the command on a few microbatches and return its files."""
    assert main([*QUICK, *flags, "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def results(folder, *flags):
    """What a run writes besides its report, which says by which flags it was made."""
    files = run(folder, *flags)
    del files["report.html"]
    return files


def figures(folder, *flags):
    """What a run says."""
    return json.loads(run(folder, *flags)["result.json"])
