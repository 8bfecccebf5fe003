"""Extender of kube-scheduler: which nodes fit a pod, how good they are, gangs, preemption, binding.

GPU numbers that it decides on bind the pod only through DRA (ResourceClaims): with the device
plugin the kubelet chooses the GPUs itself. Then the numbers are a plan that the count obeys.
"""

from des.base.lazy import lazy_imports
from scenarios.k8s.extender_config import Config

with lazy_imports(__name__):
    from scenarios.k8s import running

EXAMPLES = """\
examples:
  python -m scenarios.k8s extender --state state.yaml
  python -m scenarios.k8s extender --state state.yaml --kubeconfig ~/.kube/config --weights w.yaml
  python -m scenarios.k8s extender --in-cluster --host 0.0.0.0 \\
    --tls-cert tls.crt --tls-key tls.key --client-ca ca.crt
  curl -s http://127.0.0.1:8888/metrics

state file (YAML or JSON; topologies are files next to it, or kinds of servers):
  servers:
    - {name: gpu-a, file: topo-a.txt, free: [0, 1, 2, 3]}
    - {name: gpu-b, simulate: dgx-h100, levels: {rack: r1}}
    - {name: cpu-c}
  pods:
    - {uid: 0b6f5d0e-6d0a-4a38-9a55-3f1a3c1d7a01, node: gpu-b, gpus: [0, 1]}
  gangs:
    - {namespace: ml, name: train, size: 4}

weights file: {topology: 40, numa: 30, balance: 20, preference: 10}
"""


def run(config: Config) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    return running.serve_extender(config)
