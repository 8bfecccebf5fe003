"""Files that the explorer saves: network, plan, trace and report."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path

from agents.decision.profile_entry import without_profiles
from des.plan.plan_texts import pipelines_text
from des.views.chrome_trace import chrome_trace_json
from des.world.files.topology_writer import to_yaml
from des.worlds.world_flags import LayerFlags
from scenarios.explore.scene import Scene
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.frame.report_page import render_report

NETWORK_FILE = "network.yaml"


def export_of(scene: Scene, kind: str) -> tuple[str, bytes]:
    """Return the name and content of a file.

    Raises
    ------
    KeyError
        If there is no such kind of file.
    """
    name, make = _MAKERS[kind]
    return name, make(scene)


def simulate_flags(scene: Scene) -> dict[str, object]:
    """Return the settings of `scenarios.simulate` that simulate the scene, on its network file."""
    names = tuple(scene.topology.index_of)
    texts = pipelines_text(scene.plan, names).split(" | ")
    flags: dict[str, object] = {
        "network": NETWORK_FILE,
        **{one.name: getattr(scene.settings, one.name) for one in fields(LayerFlags)},
        "placement": texts[0],
        "schedule": scene.settings.schedule,
        "microbatches": scene.settings.num_sequences,
    }
    return flags if len(texts) == 1 else flags | {"replicas": ";".join(texts[1:])}


def _plan(scene: Scene) -> bytes:
    """The plan as a file for ``--config`` of `scenarios.simulate`."""
    return (json.dumps(simulate_flags(scene), indent=2) + "\n").encode()


def scene_report(scene: Scene) -> Report:
    """Return the report of a scene."""
    facts = scene.sentences()
    answer = f"{facts['time']}; {facts['bottleneck']}."
    return Report(
        title=f"{scene.settings.model} on {scene.settings.network}",
        question=f"How does a {scene.settings.family.replace('_', ' ')} plan do?",
        answer=answer,
        repeat=Repetition(
            command="python -m scenarios.simulate --config plan.json",
            configuration=asdict(scene.settings),
        ),
        first=scene.views.first,
        tables=(PageTable(title="Figures", head=("figure", "value"), rows=tuple(facts.items())),),
        figures=scene.views.more,
        caveats=("The command needs plan.json and network.yaml, which the explorer saves too.",),
    )


_MAKERS: Mapping[str, tuple[str, Callable[[Scene], bytes]]] = {
    "network": (NETWORK_FILE, lambda scene: to_yaml(without_profiles(scene.topology)).encode()),
    "plan": ("plan.json", _plan),
    "trace": ("trace.json", lambda scene: chrome_trace_json(scene.result)),
    "report": ("report.html", lambda scene: render_report(scene_report(scene)).encode()),
}
"""Name and content of each kind of file."""


REPORT = "report.html"
_MOST_BYTES = 64 * 2**20


def names_with_report(runs: Path) -> list[str]:
    """Names of the folders in a folder that have a report, sorted."""
    if not runs.is_dir():
        return []
    with os.scandir(runs) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(name for name in folders if _is_regular(runs / name / REPORT))


def read_report(runs: Path, name: str) -> bytes | None:
    """Return the report of a folder; None if there is none, or it is a link or too large."""
    if name not in names_with_report(runs):
        return None
    try:  # by descriptors: what was a folder or a file just now may be a link by now
        folder = os.open(runs / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        report = os.open(REPORT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with open(report, "rb") as file:
            found = os.fstat(report)
            is_whole = stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES
            return file.read(_MOST_BYTES) if is_whole else None
    except OSError:
        return None
    finally:
        os.close(folder)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
