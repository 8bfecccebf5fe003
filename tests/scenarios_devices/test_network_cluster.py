"""The domains of a topology file as the cluster of a subcommand."""

import json

import pytest

from scenarios.devices.command import main

WORLD = """\
topology:
  domains:
    - name: East
      num_gpus: 32
      intra_bandwidth: 300GB/s
      intra_latency: 3us
      nodes: {server: dgx-a100, nic_latency: 5us, rack: [a, a, b, b]}
    - {name: West, num_gpus: 8, intra_bandwidth: 300GB/s, intra_latency: 3us}
  cross_domain_links:
    - {source: East, dest: West, bandwidth: 10Gbps, latency: 30ms}
"""


def test_nodes_of_a_rack_of_a_domain_are_chosen(tmp_path, capsys):
    (tmp_path / "world.yaml").write_text(WORLD)
    flags = ["nodes", "--network", str(tmp_path / "world.yaml"), "--count", "2"]

    assert main([*flags, "--required", "rack", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["nodes"] == ["East-0", "East-1"]


@pytest.mark.parametrize(
    ("flags", "given"), [([], "neither"), (["--network", "n", "--cluster", "{here}"], "both")]
)
def test_a_cluster_comes_from_one_of_two_flags(tmp_path, capsys, flags, given):
    (tmp_path / "c").write_text("SwitchName=s Nodes=n[0-1]\n")
    flags = [flag.format(here=tmp_path / "c") for flag in flags]

    assert main(["labels", *flags]) == 2

    said = f"error: one of --cluster and --network must be given, got {given}\n"
    assert capsys.readouterr().err == said
