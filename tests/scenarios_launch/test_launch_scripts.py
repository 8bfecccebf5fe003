"""Programs of a launch, run by bash with stand-ins for torchrun, ssh, ping and iperf3."""

import json
import os
import subprocess

import pytest
from launch_cases import drawn_bound
from plan_files import bound_case

from scenarios.launch.launch_files import launch_files

IPERF = {"end": {"sum_received": {"bits_per_second": 9.5e9}}}
STAND_INS = {
    "torchrun": 'printf "%s\\n" "$@" "NCCL_BUFFSIZE=$NCCL_BUFFSIZE"',
    "ping": 'if [[ "$*" == *"-s 1472"* && -n ${TUNNEL:-} ]]; then exit 1; fi\n'
    '[[ "$*" != *"${DOWN:-none}"* ]]',
    "ssh": 'SSH_CLIENT="${SEEN:-10.0.0.1} 1 2" exec bash -c "${@: -1}"',
    "hostname": "if [[ ${1:-} == -I ]]; then echo 10.0.0.1; else echo A-0; fi",
    "sysctl": "case $2 in *idle) echo 0 ;; net.core*) echo ${BUFFER:-8000000} ;; "
    "*) echo 4096 131072 ${BUFFER:-8000000} ;; esac",
    "python3": "echo 2.27.3",
    "iperf3": f"if [[ $1 == --client ]]; then echo '{json.dumps(IPERF, indent=1)}'; fi",
    "sleep": ":",
}


@pytest.fixture
def folder(tmp_path):
    """A launch of the plan of `plan_files`, with stand-ins in a folder of programs."""
    files = launch_files(bound_case()).files
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return tmp_path


def run(folder, name, *argv, **variables):
    """Run a program of a launch and return its end."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(folder / name), *argv],
        env=os.environ | {"PATH": path, "MEGATRON": "/opt/megatron"} | variables,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_launch_starts_the_ranks_of_its_host_with_all_flags(folder):
    """Host B-1 is the fourth of four; further flags come last, and the layout is not expanded."""
    (folder / "Et*8").touch()
    end = run(folder, "launch.sh", "B-1", "--lr", "1e-4")

    assert end.returncode == 0, end.stderr
    words = end.stdout.splitlines()
    assert words[:8] == [
        *("--nnodes", "4", "--node-rank", "3", "--nproc-per-node", "8", "--master-addr", "A-0"),
    ]
    script = words.index("/opt/megatron/pretrain_gpt.py")
    flags = (folder / "args.txt").read_text("utf-8").split()
    assert words[script + 1 :] == [*flags, "--lr", "1e-4", "NCCL_BUFFSIZE=4194304"]


def test_launch_takes_the_name_of_its_own_host(folder):
    assert "--node-rank\n0\n" in run(folder, "launch.sh").stdout


def test_launch_refuses_a_host_that_it_has_not(folder):
    end = run(folder, "launch.sh", "C-0")

    assert (end.returncode, end.stdout) == (2, "")
    assert end.stderr == "launch.sh: host must be one of hosts.txt, got C-0\n"


def test_preflight_passes_where_all_is_well_and_keeps_the_answer_of_iperf3(folder):
    end = run(folder, "preflight.sh")

    assert end.returncode == 0, end.stdout + end.stderr
    lines = end.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert "ok     A -> B rate: 9.50 Gbit/s" in lines
    assert "ok     A -> B NCCL: 2.27.3" in lines
    assert json.loads((folder / "preflight" / "A-B.json").read_text("utf-8")) == IPERF


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"DOWN": "B-0"}, "A -> B reachable: B-0 does not answer ping"),
        ({"TUNNEL": "1"}, "A -> B MTU: below 1500 bytes, as under a tunnel"),
        ({"SEEN": "203.0.113.9"}, "A -> B address: B-0 sees 203.0.113.9, no address of A-0: NAT"),
        ({"BUFFER": "212992"}, "A-0 net.core.rmem_max: 212992, must be at least 6250000"),
    ],
)
def test_preflight_fails_by_name(variables, line, folder):
    end = run(folder, "preflight.sh", "A", **variables)

    assert end.returncode == 1
    assert f"failed {line}" in end.stdout


def test_preflight_refuses_a_site_without_borders(folder):
    end = run(folder, "preflight.sh", "C")

    assert end.returncode == 2
    assert end.stderr == "preflight.sh: site must be one of A B, got 'C'\n"


def test_launches_of_diloco_need_their_lighthouse(folder):
    bound = next(
        found
        for found in (drawn_bound("torchtitan", seed) for seed in range(24))
        if found.plan.synchronisation.steps_between > 1
    )
    for name, text in launch_files(bound).files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    host = (folder / "replica-1" / "hosts.txt").read_text("utf-8").split("\n")[1].split()[1]

    refused = run(folder, "replica-1/launch.sh", host)
    assert refused.returncode != 0
    assert "must be the address of the lighthouse" in refused.stderr
    started = run(folder, "replica-1/launch.sh", host, TORCHFT_LIGHTHOUSE="http://x:29510")
    assert "-m\ntorchtitan.train\n--module\neastwest_config\n" in started.stdout
