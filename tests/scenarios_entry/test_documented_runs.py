"""Every command of README, docs and examples is run as shown, or marked with a reason.

`documented_commands.txt` has each of them, below the way in which it is run. What a page shows of
its output is what it prints, and files that a page shows are those that its commands read.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path

import documented
import pytest
from documented import PAGES, ROOT, Shown, differs, files_of, shortened, shown_on, ways
from stand_ins import STAND_INS

from scenarios.entry.command import main
from scenarios.entry.table import COMMANDS

WAY = re.compile(
    r"(run|soak)(?:, exit code (\d(?: or \d)?))?(?:, with (--.+))?|run by (\S+)|not run: (.+)"
)
IN_FOLDERS = {"examples/astra-sim/README.md": "examples/astra-sim"}
"""Pages whose commands are for their own folder."""
EVERY = [shown for page in PAGES for shown in shown_on(page)]


def pages_of(kind: str) -> list[list[Shown]]:
    """Commands of each page that are run in this way, each once, in the order of the page."""
    found: dict[str, dict[str, Shown]] = {}
    for shown in EVERY:
        way = WAY.fullmatch(ways().get(shown.normal, ""))
        if way and way[1] == kind:
            found.setdefault(shown.page, {}).setdefault(shown.normal, shown)
    return [list(commands.values()) for commands in found.values()]


def exit_codes_of_way(shown: Shown) -> set[int]:
    return set(map(int, (WAY.fullmatch(ways()[shown.normal])[2] or "0").split(" or ")))


def folder_of(place: Path, shown: Shown) -> Path:
    """Working folder of a page, below a clean one; a copy of ours."""
    name = shown.folder or IN_FOLDERS.get(shown.page, "")
    if name and not (place / name).exists():
        shutil.copytree(ROOT / name, place / name)
    return place / name


@pytest.fixture
def place(tmp_path):
    """Clean folder with the files of a checkout that commands read, and files of the reader."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("tests", "notebooks", "agents/checkpoints"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    shown = {name: text for page in PAGES for name, text in files_of(page).items()}
    for name, text in (STAND_INS | shown).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_every_command_of_the_pages_is_in_the_table_and_no_other():
    shown = {each.normal for each in EVERY}

    assert sorted(shown - set(ways())) == []
    assert sorted(set(ways()) - shown) == []
    assert len(shown) > 250


def test_every_way_is_known_and_tests_that_run_commands_exist():
    for way in set(ways().values()):
        found = WAY.fullmatch(way)
        assert found, way
        assert not found[4] or (ROOT / found[4]).is_file(), way


def test_a_command_is_found_with_its_folder_and_without_its_output(tmp_path, monkeypatch):
    monkeypatch.setattr(documented, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "Run `python -m scenarios.kpi --quick`, not `kpi`.\n"
        "```python\nprint()\n```\n"
        "```sh\ncd runs\n.venv/bin/python -m scenarios.simulate \\\n  --bound   # a bound\n```\n"
        "```\n$ eastwest suites hard\nrows of eastwest suites\n```\n"
    )

    found = shown_on(page)

    assert [(each.normal, each.folder) for each in found] == [
        ("eastwest kpi --quick", ""),
        ("eastwest simulate --bound", "runs"),
        ("eastwest suites hard", ""),
    ]


def test_a_long_command_is_made_short_by_other_flags():
    line = "eastwest kpi --targets gap --seed 3 # long"

    assert shortened(line, "") == line
    assert shortened("x --seed 3 --out a", "--seed 1 --quick") == "x --seed 1 --out a --quick"
    assert shortened("x --num-worlds 40", "--num-worlds 1 --no-search") == (
        "x --num-worlds 1 --no-search"
    )


@pytest.mark.parametrize("commands", pages_of("run"), ids=lambda each: each[0].page)
def test_commands_of_a_page_run_as_shown(commands, place, monkeypatch):
    """In this process, one after the other in one folder."""
    failed = {}
    for each in commands:
        monkeypatch.chdir(folder_of(place, each))
        code, printed = in_process(each.normal)
        if wrong := wrong_in(each, code, printed):
            failed[each.normal] = wrong

    assert failed == {}


def wrong_in(shown: Shown, code: int, printed: str | None) -> str:
    """Name the exit code or the line of output (None: not compared) that is not as shown."""
    if code not in exit_codes_of_way(shown):
        return f"exit code {code}"
    return differs(shown.output, printed) if shown.output and printed is not None else ""


def main_of(words: list[str]) -> int:
    """Run the command that the words name, by its module or by `eastwest`."""
    if words[0] == "eastwest":
        return main(words[1:])
    if words[0] == "sed":
        sys.stdout.write(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        return 0
    module = words[2]
    assert words[:2] == ["python", "-m"]
    if module == "agents.decide" or module.startswith("astra_sim."):
        return import_module(module).main(words[3:])
    return next(each for each in COMMANDS if each.module == module).run(words[3:])


def in_process(normal: str) -> tuple[int, str]:
    """Exit code and output of a command of ours, in this process; also into its file."""
    line, _, path = normal.partition(" > ")
    run = decided if line.startswith("eastwest decide ") else ended
    code, printed = run(line)
    if path:
        Path(path).write_text(printed, "utf-8")
    return code, "" if path else printed


def ended(line: str) -> tuple[int, str]:
    """Exit code and output of a command without a shell."""
    with redirect_stdout(StringIO()) as printed:
        try:
            code = main_of(shlex.split(line))
        except SystemExit as end:  # of --help
            code = int(end.code or 0)
    return code, printed.getvalue()


@cache
def decided(line: str) -> tuple[int, str]:
    """The same of a decision, which pages share, on equal files."""
    return ended(line)


def installed(place: Path) -> list[str]:
    """Paths of the package of the tutorial, with its metadata, as pip installs it."""
    project = tomllib.loads((place / "mine/pyproject.toml").read_text("utf-8"))["project"]
    metadata = place / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\n")
    ((group, rows),) = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in rows.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return [str(place), str(place / "mine")]


@pytest.mark.soak
@pytest.mark.parametrize("commands", pages_of("soak"), ids=lambda each: each[0].page)
def test_dear_commands_of_a_page_run_as_shown(commands, place):
    """In a shell, one after the other in one folder; `python` and `eastwest` are those here."""
    programs = place / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, words in (("python", ""), ("eastwest", "-m scenarios")):
        (programs / name).write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n'
        )
        (programs / name).chmod(0o755)
    environment = os.environ | {
        "HOME": str(place),
        "COLUMNS": "80",
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "astra-sim"), *installed(place)]),
    }
    failed = {}
    for shown in commands:
        flags = WAY.fullmatch(ways()[shown.normal])[3] or ""
        done = subprocess.run(
            ["sh", "-c", shortened(re.sub(r"\s#.*$", "", shown.line), flags)],
            cwd=folder_of(place, shown),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if wrong := wrong_in(shown, done.returncode, None if flags else done.stdout):
            failed[shown.normal] = (wrong, done.stderr[-600:])

    assert failed == {}
