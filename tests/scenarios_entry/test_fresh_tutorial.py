"""The tutorial as a reader runs it: a new environment, the wheel, and nothing compiled before."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from documented import ROOT, differs, files_of, shown_on

PAGE = ROOT / "docs/tutorial.md"
SOURCES = ("agents", "astra-sim", "calibration", "des", "scenarios")
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
NOT_OF_READERS = ("PYTHONPATH", "NUMBA_CACHE_DIR", "VIRTUAL_ENV")


class Machine:
    """A folder with a source, a new environment and a home of its own; times of what is run."""

    def __init__(self, folder):
        self.folder, self.times_s = folder, {}
        for part in (*SOURCES, *FILES):
            copy = shutil.copytree if part in SOURCES else shutil.copyfile
            (folder / "source").mkdir(exist_ok=True)
            copy(ROOT / part, folder / "source" / part)
        kept = {name: value for name, value in os.environ.items() if name not in NOT_OF_READERS}
        self.environment = kept | {
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PATH": f"{folder / 'new/bin'}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
        }

    def run(self, name, *words, place="."):
        """Run words and return what they print."""
        began_s, where = time.monotonic(), self.folder / place
        done = subprocess.run(
            words, cwd=where, env=self.environment, capture_output=True, text=True, check=False
        )
        self.times_s[name] = time.monotonic() - began_s
        assert done.returncode == 0, (name, done.stdout[-600:], done.stderr[-600:])
        return done.stdout

    def install(self):
        """Make the environment, build the wheel and install it, first without extras."""
        pip = (str(self.folder / "new/bin/python"), "-m", "pip")
        self.run("new environment", sys.executable, "-m", "venv", "new")
        self.run("wheel", *pip, "wheel", "-q", "--no-deps", "--wheel-dir", "dist", "./source")
        (wheel,) = (self.folder / "dist").glob("eastwest-*.whl")
        self.run("base", *pip, "install", "-q", str(wheel))
        self.run("[sb3]", *pip, "install", "-q", f"{wheel}[sb3]")


@pytest.mark.soak
def test_the_tutorial_runs_in_a_new_environment(tmp_path, capsys):
    """``make soak ARGS=tests/scenarios_entry/test_fresh_tutorial.py``; pip needs its indexes."""
    machine, wrong = Machine(tmp_path), {}
    for name, text in files_of(PAGE).items():
        (tmp_path / "empty" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "empty" / name).write_text(text, "utf-8")
    machine.install()
    for shown in shown_on(PAGE):
        if shown.output or shown.line.startswith(("sed", "pip install ./", "eastwest")):
            printed = machine.run(shown.line, "sh", "-c", shown.line, place="empty")
            if shown.output and (line := differs(shown.output, printed)):
                wrong[shown.line] = line
    with capsys.disabled():
        for name, each_s in (machine.times_s | {"in all": sum(machine.times_s.values())}).items():
            print(f"{each_s:7.1f} s  {name}")  # noqa: T201

    assert len(machine.times_s) > 12
    assert wrong == {}
