"""Manifests obey Kubernetes' schemas and models, and say what they should."""

import json
import re
from importlib.util import find_spec

import pytest
import yaml
from command_output import assert_refused
from sysfs_trees import pcie_tree

from des.devices.k8s.node_text import read_server_annotation
from scenarios.k8s.command import main
from scenarios.k8s.manifest_models import MODELS, check_configuration
from scenarios.k8s.manifests import MANIFESTS
from scenarios.k8s.metric_names import ALL_REDUCE_METRIC, NUMA_METRIC

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
ROOTS = {f"0000:{n + 1:02x}:00.0": f"pci0000:0{n // 2}" for n in range(4)}
NEEDS_SCHEMAS = pytest.mark.skipif(
    find_spec("kubernetes_validate") is None,
    reason="needs the extra k8s: kubernetes-validate",
)


def written(capsys, *argv: str, simulate: str = "dgx-a100") -> list[dict]:
    """Documents that the command prints."""
    assert main(["manifests", "--simulate", simulate, *argv]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


@NEEDS_SCHEMAS
@pytest.mark.parametrize(
    ("version", "tls"), [*((each, "--tls") for each in VERSIONS), ("1.37", "--no-tls")]
)
def test_all_manifests_obey_the_schemas(version, tls, capsys):
    found = written(capsys, "--kubernetes", version, "--validate", tls)

    kinds = {document["kind"] for document in found}
    gangs = {"1.34": set(), "1.35": {"Workload"}}.get(version, {"Workload", "PodGroup"})
    assert kinds & {"Workload", "PodGroup"} == gangs
    assert {"Deployment", "Service", "ClusterRole", "ConfigMap", "Pod", "ResourceSlice"} <= kinds
    assert {"ResourceClaim", "DaemonSet", "ServiceAccount", "ClusterRoleBinding", *MODELS} <= kinds


@NEEDS_SCHEMAS
def test_schemas_refuse_what_is_wrong():
    from scenarios.k8s.schema_check import check_schema  # noqa: PLC0415 of an extra

    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    check_schema(service, "1.37")
    with pytest.raises(ValueError, match=r"v1 Service: spec.*ports"):
        check_schema({**service, "spec": {"port": [], "ports": {}}}, "1.37")
    with pytest.raises(ValueError, match=r"has no such kind"):
        check_schema({**service, "kind": "Servise"}, "1.37")


@pytest.mark.parametrize("kind", ["dgx-a100", "dgx-1-v100", "nvswitch", "gb200-nvl72"])
def test_reserved_memory_of_the_kubelet_adds_up(kind, capsys):
    (config,) = written(capsys, "--only", "kubelet", "--eviction", "101MiB", simulate=kind)

    parts = (config["kubeReserved"]["memory"], config["systemReserved"]["memory"])
    total = sum(int(text.removesuffix("Mi")) for text in (*parts, "101Mi"))
    reserved = [int(each["limits"]["memory"][:-2]) for each in config["reservedMemory"]]
    assert sum(reserved) == total == 2149
    assert max(reserved) - min(reserved) <= 1
    config["reservedMemory"][0]["limits"]["memory"] = "1Mi"
    with pytest.raises(ValueError, match="reservedMemory: must be"):
        check_configuration(config)


def test_the_scheduler_sends_names_and_the_extender_does_not_swamp_plugins(capsys):
    config, text = written(capsys, "--only", "scheduler-config,config-map")
    (extender,) = config["extenders"]

    assert extender["nodeCacheCapable"] is True
    assert 10 * extender["weight"] * 10 <= 1200 / 2  # in-tree plugins: weights of 12, 100 each
    assert re.fullmatch(r"\d+s", extender["httpTimeout"])
    assert config["percentageOfNodesToScore"] == 100
    assert json.loads(text["data"]["scheduler.json"]) == config
    weights = {"topology": 40, "numa": 30, "balance": 20, "preference": 10}
    points = {"latency": 0, "same_numa_bonus": 0, "cross_numa_penalty": 0}
    assert json.loads(text["data"]["weights.json"]) == weights | points


def test_shipped_weights_have_latency_and_points_for_numa_nodes(capsys):
    (text,) = written(capsys, "--only", "config-map", "--weights", "profile")

    assert json.loads(text["data"]["weights.json"]) == {
        "topology": 0.4,
        "latency": 0.3,
        "balance": 0.3,
        "numa": 0,
        "preference": 0,
        "same_numa_bonus": 50,
        "cross_numa_penalty": 20,
    }


def test_several_resources_are_managed_and_pods_ask_for_the_first(capsys):
    names = ["huawei.com/Ascend910B", "nvidia.com/gpu"]
    flags = ("--only", "scheduler-config,extender,pods", "--resource", ",".join(names))
    config, extender, pod, _ = written(capsys, *flags)

    assert [each["name"] for each in config["extenders"][0]["managedResources"]] == names
    command = extender["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--resources") + 1] == ",".join(names)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert (limits[names[0]], names[1] in limits) == ("4", False)


@NEEDS_SCHEMAS
def test_pods_have_what_their_flags_say(capsys):
    flags = {
        "--pod-name": "job",
        "--pod-image": "example.org/a:1",
        "--gpus-per-pod": "2",
        "--cpus-per-pod": "3",
        "--memory-per-pod": "5GiB",
        "--accelerator": "h100",
        "--node-selector": "disk=ssd",
        "--tolerations": "nvidia.com/gpu:NoSchedule,a=b:NoExecute",
        "--spread": "topology.kubernetes.io/zone:2",
    }
    flat = [word for pair in flags.items() for word in pair]
    pod, _ = written(capsys, "--only", "pods", "--validate", "--cuda-visible-devices", *flat)

    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    assert (pod["metadata"]["name"], container["image"]) == ("job-0", "example.org/a:1")
    sizes = {"cpu": "3", "memory": "5120Mi", "nvidia.com/gpu": "2"}
    assert container["resources"] == {"requests": sizes, "limits": sizes}
    assert spec["nodeSelector"] == {"accelerator": "h100", "disk": "ssd"}
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"},
    ]
    (rule,) = spec["topologySpreadConstraints"]
    assert (rule["topologyKey"], rule["maxSkew"]) == ("topology.kubernetes.io/zone", 2)
    assert rule["labelSelector"]["matchLabels"] == pod["metadata"]["labels"]
    (variable,) = container["env"]
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert (variable["name"], path) == (
        "CUDA_VISIBLE_DEVICES",
        "metadata.annotations['topology.example.com/gpu-ids']",
    )


def test_the_kubelet_has_the_options_and_the_policy_that_are_asked_for(capsys):
    options = ["full-pcpus-only", "distribute-cpus-across-numa"]
    flags = ("--cpu-manager-options", ",".join(options), "--topology-policy", "best-effort")
    (config,) = written(capsys, "--only", "kubelet", *flags)

    assert config["cpuManagerPolicyOptions"] == dict.fromkeys(options, "true")
    assert config["topologyManagerPolicy"] == "best-effort"


def test_programs_find_the_topology_in_a_config_map(capsys):
    (found,) = written(capsys, "--only", "gpu-topology", "--node", "n7", simulate="dgx-h100")

    assert found["metadata"]["name"] == "gpu-topology-config"
    (server,) = json.loads(found["data"]["topology.json"]).items()
    assert server[0] == "n7"
    assert read_server_annotation(json.dumps(server[1]), "n7").num_gpus == 8


@pytest.mark.parametrize("field", ["urlPrefixes", "HttpTimeout"])
def test_misspelt_fields_of_configurations_are_refused(field, capsys):
    (config,) = written(capsys, "--only", "scheduler-config")
    config["extenders"][0][field] = "5s"

    with pytest.raises(ValueError, match=f"KubeSchedulerConfiguration: extenders.*{field}"):
        check_configuration(config)


def test_resource_slice_has_the_standard_attributes(tmp_path, capsys):
    rows = "".join(f"{n}, 00000000:{n + 1:02X}:00.0\n" for n in range(4))
    (tmp_path / "pci.txt").write_text(f"index, pci.bus_id\n{rows}", "utf-8")
    topo = "tests/golden/topo/08-rtx6000ada-pcie-node-sys-spaces.txt"
    sysfs = pcie_tree(tmp_path, ROOTS)
    files = f"{topo},{tmp_path / 'pci.txt'},{sysfs}"
    argv = ["--file", files, "--only", "resource-slice,resource-claim"]
    assert main(["manifests", *argv, "--gpus-per-pod", "2"]) == 0
    slice_, claim = yaml.safe_load_all(capsys.readouterr().out)

    devices = slice_["spec"]["devices"]
    assert [d["attributes"]["resource.kubernetes.io/numaNode"]["int"] for d in devices] == [
        0,
        0,
        1,
        1,
    ]
    roots = [d["attributes"]["resource.kubernetes.io/pcieRoot"]["string"] for d in devices]
    assert roots == list(ROOTS.values())
    address = devices[1]["attributes"]["resource.kubernetes.io/pciBusID"]
    assert address == {"string": "0000:02:00.0"}
    (request,) = claim["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 2
    expression = request["exactly"]["selectors"][0]["cel"]["expression"]
    assert expression.endswith('.pciBusID in ["0000:01:00.0", "0000:02:00.0"]')


def test_a_claim_without_addresses_keeps_to_one_numa_node(capsys):
    (claim,) = written(capsys, "--only", "resource-claim", simulate="dgx-h100")

    assert claim["spec"]["devices"]["constraints"] == [
        {"requests": ["gpus"], "matchAttribute": "resource.kubernetes.io/numaNode"}
    ]


def test_rules_watch_metrics_that_the_extender_has(capsys):
    (rule,) = written(capsys, "--only", "rules", "--all-reduce-bound-s", "0.5")
    rules = {each["alert"]: each for each in rule["spec"]["groups"][0]["rules"]}

    numa, slow = rules["GpusOverSeveralNumaNodes"], rules["SlowAllReduce"]
    assert (numa["expr"], numa["labels"]["severity"]) == (f"{NUMA_METRIC} > 1", "warning")
    assert (slow["expr"], slow["labels"]["severity"]) == (f"{ALL_REDUCE_METRIC} > 0.5", "critical")


def test_files_are_written_to_a_folder(tmp_path, capsys):
    out = tmp_path / "manifests"
    assert main(["manifests", "--simulate", "dgx-h100", "--out", str(out)]) == 0

    assert {path.stem for path in out.iterdir()} == set(MANIFESTS)
    assert "15 files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--only", "deploy"], "--only: unknown 'deploy'"),
        (["--weight", "0"], "weight must be a whole number from 1"),
        (["--eviction", "lots"], "--eviction must be a size"),
        (["--tolerations", "a:Never"], "--tolerations must be KEY:EFFECT or KEY=VALUE:EFFECT"),
        (["--spread", "zone"], "--spread must be KEY:MAXSKEW, got 'zone'"),
        (["--cpu-manager-options", "full"], "--cpu-manager-options: unknown 'full'"),
        (["--cpus-per-pod", "0"], "cpus_per_pod must be a whole number from 1"),
        (["--eviction", "1KiB"], "eviction_bytes must be whole MiB"),
        (["--kubernetes", "1.20"], "--kubernetes"),
    ],
)
def test_wrong_flags_are_refused(argv, message, tmp_path, capsys):
    out = tmp_path / "manifests"
    argv = ["manifests", "--simulate", "dgx-h100", "--out", str(out), *argv]

    assert_refused(main, argv, message, capsys, unwritten=out)
