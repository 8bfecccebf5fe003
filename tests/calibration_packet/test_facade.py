"""The facade of ns-3 in C++ alone, and the child after many runs; both take long."""

import math
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_recorded_flows import CASES, SMALL, flow_times_s, flows_of, process, world_of

import calibration.packet
from calibration.packet.child import LIBRARIES, SEED
from calibration.packet.numbers import network_numbers
from calibration.packet.process import KNOWN_VERSION

pytestmark = pytest.mark.soak
__all__ = ["process"]

CASE = next(each for each in CASES if each["name"] == SMALL)
MOST_GROWTH_KB = 20_000


def braces(values):
    words = {True: "true", False: "false"}
    return "{" + ", ".join(words.get(one, str(one)) for one in values) + "}"


def program_of(world, flows):
    """C++ that plays a world's flows through the facade and prints when each has arrived."""
    numbers = network_numbers(world)
    lines = [
        f"Transport transport{braces(numbers.transport)};",
        f"PacketNetwork network({numbers.num_hosts}, transport, {SEED}, 1);",
    ]
    for first, second, *joint in numbers.joints:
        lines.append(f"network.AddLink({first}, {second}, Joint{braces(joint)});")
    lines += [f"network.AddRoute({', '.join(map(str, route))});" for route in numbers.routes]
    lines += [f"network.SetWindow({', '.join(map(str, one))});" for one in numbers.windows]
    for number, (source, target, size, start_s) in enumerate(flows):
        when_ns = round(start_s * 1e9)
        lines.append(f"network.Send({number}, {source}, {target}, {math.ceil(size)}, {when_ns});")
    lines.append('std::cout << network.Advance(1000000000000) << "\\n";')
    body = "\n  ".join(lines)
    return (
        f'#include "facade.h"\n#include <iostream>\nusing namespace eastwest;\n'
        f"int main() {{\n  {body}\n}}\n"
    )


def test_the_facade_compiled_alone_gives_the_same_times(process, tmp_path):
    """Without Python and cppyy between: the arrival of a message to the nanosecond."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    root = Path(next(iter(find_spec("ns3").submodule_search_locations)))
    world, flows = world_of(CASE), flows_of(CASE)
    (tmp_path / "main.cpp").write_text(program_of(world, flows), "utf-8")
    libraries = [
        str(root / "lib64" / f"libns{KNOWN_VERSION}-{name}.so") for name in reversed(LIBRARIES)
    ]
    folders = [f"-I{root / 'include'}", f"-I{Path(calibration.packet.__file__).parent}"]
    words = [compiler, "-std=c++20", "-O1", "-w", *folders, "main.cpp", "-o", "main", *libraries]
    words += [f"-Wl,-rpath,{root / 'lib64'}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(words, cwd=tmp_path, check=True)

    said = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)

    (expected_s,) = flow_times_s(world, process, flows, is_warm=False)
    assert int(said.stdout) == round(expected_s * 1e9)


def resident_kb(pid):
    rows = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))


def test_the_child_does_not_grow_over_a_thousand_runs(process):
    world, flows = world_of(CASE), flows_of(CASE)
    for _ in range(20):
        expected = flow_times_s(world, process, flows, is_warm=False)
    before_kb = resident_kb(process._child.pid)

    for _ in range(1000):
        assert flow_times_s(world, process, flows, is_warm=False) == expected

    assert resident_kb(process._child.pid) - before_kb < MOST_GROWTH_KB
