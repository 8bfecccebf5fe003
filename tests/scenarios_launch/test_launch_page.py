"""Page of launches: its commands, one after the other, on two small sites."""

import json
import re
from pathlib import Path

from bound_cases import site, sites
from command_output import printed_by
from documented import section

from des.world.files.topology_writer import write_topology

PAGE = section("decide.md", "Launch")
JOB = {"model": "llama2_7b", "microbatches": 16, "microbatch_size": 1, "sequence_length": 2048}
HOSTS = "A: [a0, a1]\nB: {hosts: [b0, b1], gpus: 8}\n"


def test_commands_of_the_page_decide_launch_and_simulate_with_one_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_topology(Path("now.yaml"), sites(site("A"), site("B")))
    Path("job.json").write_text(json.dumps(JOB), encoding="utf-8")
    Path("hosts.yaml").write_text(HOSTS, encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    decided, launched, simulated = map(printed_by, block.splitlines())

    step_s = json.loads(decided)["step_s"]
    assert f"{step_s!r} s a step, as the plan\n" in launched
    assert f"{step_s!r} s a step, as the file says, to the last bit" in simulated
    assert Path("launch/hosts.txt").read_text("utf-8").splitlines()[1].split()[1] in ("a0", "b0")

    (both,) = re.findall(r"`(eastwest decide [^`]*--launch[^`]*)`", PAGE)
    printed_by(f"{both.replace('--launch launch', '--launch other')} --job job.json")
    own = json.loads(Path("other/plan.json").read_text("utf-8"))
    assert own["step_s"] == step_s
