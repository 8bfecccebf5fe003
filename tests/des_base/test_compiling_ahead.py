"""A second process that compiles ahead: when it runs, and how it ends."""

import os

import pytest

from des.base.compiling_ahead import compiling_ahead
from des.base.jit import is_cached

KERNEL = """
from des.base.jit import kernel

@kernel
def doubled(value):
    return 2 * value
"""
KERNELS = {"twice": "doubled"}
STAY = """
import os, threading
with open("pid", "w") as file:
    file.write(str(os.getpid()))
threading.Event().wait()
"""
PROGRAMS = {
    "use_it": "import twice; twice.doubled(2.0)",
    "fail": "raise SystemExit(3)",
    "stay": STAY,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of modules, with a cache of its own."""
    for name, text in PROGRAMS.items() | {("twice", KERNEL)}:
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_a_kernel_is_compiled_once_and_again_when_its_source_changes(folder, capfd):
    assert not is_cached("twice", "doubled")
    with compiling_ahead("use_it", KERNELS, num_cores=2) as wait:
        wait()
    assert is_cached("twice", "doubled")
    assert capfd.readouterr().err.startswith("compiling for this machine")

    with compiling_ahead("fail", KERNELS, num_cores=2) as wait:
        wait()
    assert capfd.readouterr().err == ""

    (folder / "twice.py").write_text(KERNEL.replace("2", "3"), "utf-8")
    os.utime(folder / "twice.py", (0, 0))
    assert not is_cached("twice", "doubled")


def test_a_failure_is_a_line_with_the_exit_code(folder, capfd):
    with compiling_ahead("fail", KERNELS, num_cores=2) as wait:
        wait()

    assert capfd.readouterr().err == "compiling ahead: the second process ended with code 3\n"


def use_badly(folder):
    """Work with a second process, up to an error with its number."""
    with compiling_ahead("stay", KERNELS, num_cores=2):
        pid = int((folder / "pid").read_text())
        os.kill(pid, 0)
        raise ValueError(pid)


def test_the_second_process_ends_with_the_work_of_the_first(folder):
    os.mkfifo(folder / "pid")  # reading waits for the process

    with pytest.raises(ValueError, match=r"\d") as ended:
        use_badly(folder)

    with pytest.raises(ProcessLookupError):
        os.kill(ended.value.args[0], 0)


def test_a_single_core_has_no_second_process(folder, capfd):
    with compiling_ahead("fail", KERNELS, num_cores=1) as wait:
        wait()

    assert capfd.readouterr().err == ""
