"""Commands whose outputs are closed, or that are interrupted twice; figures that nothing has."""

import signal
import subprocess
import sys
import time

import pytest
from command_output import error_of
from hypothesis import given
from hypothesis import strategies as st
from processes import python
from pydantic import TypeAdapter, ValidationError

from des import read_topology
from des.world.files.quantity_fields import Bandwidth, Latency, Size, Speed
from des.worlds import EAST_CENTRAL_WEST
from scenarios.simulate import main as simulate

pytestmark = pytest.mark.attack
SHOW = ("-m", "scenarios.devices", "show", "--simulate", "dgx-h100")
CLOSED = "error: stdout must be open, got a closed one; > /dev/null drops output\n"
_TWICE = """
import atexit, sys, time
from des.base.command import exit_code_of
atexit.register(time.sleep, 0.2)
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.1)
slow = Slow()
def body():
    print("begun", flush=True)
    time.sleep(60.0)
sys.exit(exit_code_of(body))
"""


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_a_closed_output_is_one_line_and_a_code(closed, tmp_path):
    """A stdout that is not there is bad input; without a stderr the rest is as it was."""
    redirected = " ".join(f"{number}>&-" for number in closed)
    words = " ".join([sys.executable, *SHOW])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{words} {redirected}"], capture_output=True, text=True, check=False
    )

    assert done.returncode == (2 if 1 in closed else 0)
    assert done.stderr == (CLOSED if 1 in closed and 2 not in closed else "")
    assert ("dgx-h100" in done.stdout) == (1 not in closed)


@pytest.mark.parametrize("wait_s", [0.0, 0.05, 0.15, 0.25, 0.3])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_changes_nothing(wait_s, second):
    """At once, while the command ends, and while the interpreter does."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with python("-c", _TWICE, **streams) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        time.sleep(wait_s)
        process.send_signal(second)
        _, errors = process.communicate()

    assert process.returncode == 130
    assert errors == "interrupted\n"


@given(
    number=st.floats(0.0, 1e290, exclude_min=True),
    row=st.sampled_from([(Bandwidth, "Gbps"), (Latency, "ms"), (Size, "GB"), (Speed, "TFLOP/s")]),
)
def test_quantities_are_in_reach_of_floats_or_refused(number, row):
    """Ratios and products of any few of them are finite, and not 0."""
    field, unit = row
    if not 1e-30 <= number <= 1e30:
        with pytest.raises(ValidationError, match=r"from 1e-15 to 1e\+30|must be (a|positive)"):
            TypeAdapter(field).validate_python(f"{number!r}{unit}")
    elif 1e-6 <= number <= 1e6:
        assert 1e-15 <= TypeAdapter(field).validate_python(f"{number!r}{unit}") <= 1e30


@pytest.mark.parametrize("bandwidth", ["5e-324Gbps", "1e-310Gbps", "1e-25bps", "1e300Gbps"])
def test_a_world_with_such_a_link_is_one_line(bandwidth, tmp_path, capsys):
    path = tmp_path / "world.yaml"
    text = EAST_CENTRAL_WEST.read_text("utf-8")
    path.write_text(text.replace('bandwidth: "5Gbps"', f'bandwidth: "{bandwidth}"'), "utf-8")

    with pytest.raises(ValueError, match=r"cross_domain_links.*bandwidth"):
        read_topology(path)
    shown = error_of(simulate, ["--network", str(path)], capsys)
    assert shown.startswith(f"error: {path}: topology.cross_domain_links[0].bandwidth")
