"""GPUs of sites as a cluster's nodes say them: a lost GPU re-binds the plan inside its site."""

import pytest
from api_server_cases import ApiCluster, api_server
from api_server_cases import kubeconfig as kubeconfig_of
from command_output import error_of
from watch_folders import begin, flags_of, state_of

from calibration.measurements.sites import Sites
from scenarios.k8s.api_server import reach
from scenarios.watch.command import main
from scenarios.watch.folder_source import FolderSource
from scenarios.watch.node_source import NodeSource

NODES = "/api/v1/nodes"


def node(name, gpus, *, zone=None, ready="True"):
    labels = {} if zone is None else {"topology.kubernetes.io/zone": zone}
    conditions = [{"type": "Ready", "status": ready}]
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}, "conditions": conditions}
    metadata = {"name": name, "labels": labels}
    return {"kind": "Node", "metadata": metadata, "spec": {}, "status": status}


@pytest.fixture
def cluster(tmp_path):
    """A cluster, and the kubeconfig by which it is reached."""
    found = ApiCluster()
    with api_server(found) as url:
        yield found, kubeconfig_of(tmp_path, url)


def test_gpus_of_ready_nodes_count_in_whole_servers_by_name_or_label(cluster, tmp_path):
    """Of 4 + 4 + 3 GPUs of P two whole servers of 4 are left, of F those of the ready node."""
    api, kubeconfig = cluster
    (tmp_path / "in").mkdir()
    source = NodeSource(
        api=reach(kubeconfig, False, 5.0),
        beside=FolderSource(folder=tmp_path / "in", sites=Sites(patterns={})),
        sites=Sites(patterns={"P": ("par-*",)}),
        per_server={"P": 4, "F": 1, "M": 8},
        clock=lambda: 60.0,
    )
    for one in (
        *(node(f"par-{number}", gpus) for number, gpus in enumerate((4, 4, 3))),
        *(node("x", 2, zone="F"), node("y", 8, zone="F", ready="Unknown")),
        *(node("mars", 8, zone="Mars"), node("par-cpu", 0)),
    ):
        api.put(NODES, one)

    def seen():
        return {(one.about, one.figure): one.value for one in source.arrivals().observations}

    assert seen() == {("P", "num_gpus"): 8.0, ("F", "num_gpus"): 2.0}
    api.delete(NODES, "x")
    assert seen() == {("P", "num_gpus"): 8.0, ("F", "num_gpus"): 0.0}
    again, source.known = source.known, {}
    assert (seen()["F", "num_gpus"], again) == (0.0, {"nodes of F": 1, "nodes of P": 1})
    api.set_up(False)
    (problem,) = source.arrivals().problems
    assert problem.startswith("nodes: ")


def test_a_lost_gpu_of_a_node_binds_the_plan_again_and_nothing_is_searched(
    cluster, tmp_path, capsys
):
    api, kubeconfig = cluster
    begin(tmp_path)
    words = [*flags_of(tmp_path), "--state", str(tmp_path / "state.json"), "--once"]
    words += ["--kubeconfig", str(kubeconfig)]

    def line():
        assert main(words) == 0
        return capsys.readouterr().out.splitlines()[-1]

    assert " first, " in line()
    own = state_of(tmp_path)["watch"]["in_force"]["sites"][0]["name"]
    api.put(NODES, node("a", 8, zone=own))
    assert " stay, " in line()
    api.put(NODES, node("a", 4, zone=own))
    rebound = line()
    assert " rebind, " in rebound
    assert "searched" not in rebound


def test_a_replayed_day_takes_no_cluster(cluster, tmp_path, capsys):
    begin(tmp_path)
    words = [*flags_of(tmp_path), "--dry-run", "--kubeconfig", str(cluster[1])]
    assert "must be left out of --dry-run" in error_of(main, words, capsys)
