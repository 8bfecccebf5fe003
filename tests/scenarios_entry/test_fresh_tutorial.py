"""The tutorial as a reader runs it: a new environment, the wheel, and nothing compiled before."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from documented import ROOT, differs, files_of, shown_on

PAGE = ROOT / "docs/tutorial.md"
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")


@pytest.mark.soak
def test_the_tutorial_runs_in_a_new_environment(tmp_path, capsys):
    """``make soak ARGS=tests/scenarios_entry/test_fresh_tutorial.py``; pip needs its indexes."""
    place, programs = tmp_path / "empty", tmp_path / "new/bin"
    place.mkdir()
    for name, text in files_of(PAGE).items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, "utf-8")
    left_out = ("PYTHONPATH", "NUMBA_CACHE_DIR", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in left_out} | {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
    }
    times_s: dict[str, float] = {}

    def run(words, folder, name):
        began_s = time.monotonic()
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        times_s[name] = time.monotonic() - began_s
        assert done.returncode == 0, (name, done.stdout[-600:], done.stderr[-600:])
        return done.stdout

    for part in (*("agents", "astra-sim", "calibration", "des", "scenarios"), *FILES):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
        (tmp_path / "source").mkdir(exist_ok=True)
        copy(ROOT / part, tmp_path / "source" / part)
    wheels = ["-q", "--no-deps", "--wheel-dir", str(tmp_path / "dist")]
    run([sys.executable, "-m", "venv", str(tmp_path / "new")], tmp_path, "new environment")
    pip = [str(programs / "python"), "-m", "pip"]
    run([*pip, "wheel", *wheels, str(tmp_path / "source")], tmp_path, "wheel")
    (wheel,) = (tmp_path / "dist").glob("eastwest-*.whl")
    run([*pip, "install", "-q", str(wheel)], tmp_path, "pip install")
    run([*pip, "install", "-q", f"{wheel}[sb3]"], tmp_path, "pip install [sb3]")
    wrong = {}
    for shown in shown_on(PAGE):
        if shown.output or shown.line.startswith(("sed", "pip install ./", "eastwest")):
            printed = run(["sh", "-c", shown.line], place, shown.line)
            if shown.output and (line := differs(shown.output, printed)):
                wrong[shown.line] = line
    with capsys.disabled():
        for name, each_s in times_s.items():
            print(f"{each_s:7.1f} s  {name}")  # noqa: T201
        print(f"{sum(times_s.values()):7.1f} s  in all")  # noqa: T201

    assert len(times_s) > 12
    assert wrong == {}
