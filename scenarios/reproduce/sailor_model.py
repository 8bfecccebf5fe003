"""Iteration time of a run from its profiles alone: what the training runtime does, step by step.

The runtime is DeepSpeed's pipeline engine as Sailor changed it (``deepspeed/pipe_engine.py``,
``p2p.py`` and ``utils.py`` of the artifact of SOSP 2025). Every rule has a switch, so that its
effect can be told; all off is a plain event-driven 1F1B with messages in the background. Nothing
here is fitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from des import Placement, Plan, simulate
from des.costs.collectives import all_gather_s, ring_all_reduce_s
from scenarios.reproduce.sailor_cases import SailorRun
from scenarios.reproduce.sailor_forms import StageForm
from scenarios.reproduce.sailor_network import NetworkProfile
from scenarios.reproduce.unit_world import unit_layer, unit_topology, unit_workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledEffects:
    """Effects in the model, from the profiler, the network test and the runtime.

    Parameters
    ----------
    whole_update
        The profiled optimiser step is that of a whole small model, written next to each of its
        layers; a stage takes its share by parameters. Otherwise it is taken as it stands.
    node_bandwidth
        The tensor-parallel GPUs of a node send at the same time, each its part, over the bandwidth
        of the node. Otherwise a stage's message has the profile's size as a whole, and each ring
        of the gradient all-reduce has the bandwidth of a single pair of GPUs to itself.
    blocking
        A send or receive holds up both GPUs, as NCCL does on the stream that computes. Otherwise
        messages fly in the background and only queue for the wire.
    in_node_gather
        Stages exchange an activation or gradient in parts, which the tensor-parallel GPUs of the
        receiver then gather from each other before they compute.
    """

    whole_update: bool = False
    node_bandwidth: bool = False
    blocking: bool = False
    in_node_gather: bool = False


NAIVE = ModelledEffects()
STEPS: tuple[tuple[str, ModelledEffects], ...] = (
    ("plain 1F1B", NAIVE),
    ("the optimiser step by parameters", ModelledEffects(whole_update=True)),
    ("the bandwidth of the node", ModelledEffects(whole_update=True, node_bandwidth=True)),
    ("blocking messages", ModelledEffects(whole_update=True, node_bandwidth=True, blocking=True)),
    (
        "the gather in the node",
        ModelledEffects(whole_update=True, node_bandwidth=True, blocking=True, in_node_gather=True),
    ),
)
"""The rules one after another; the last one is the model."""

MODEL = STEPS[-1][1]


def predict_s(run: SailorRun, network: NetworkProfile, rules: ModelledEffects = MODEL) -> float:
    """Iteration time: all replicas' pipelines, a barrier, gradient all-reduces, optimiser. [s]

    All stages reduce and update at the same time; the slowest counts.

    Raises
    ------
    ValueError
        If the network has no profile for a link of the run.
    """
    runtime = _Runtime(run=run, network=network, rules=rules)
    replicas = dict.fromkeys(run.replicas)  # equal ones are simulated once
    return max(map(runtime.pipeline_s, replicas)) + max(
        runtime.reduce_s(stage) + runtime.update_s(stage)
        for stage in zip(*run.replicas, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runtime:
    """Times of the parts of one run under some rules."""

    run: SailorRun
    network: NetworkProfile
    rules: ModelledEffects

    def pipeline_s(self, stages: Sequence[StageForm]) -> float:
        """Time of one replica from the first forward to the last backward. [s]

        Blocking: a stage begins a forward step by sending the gradient that it has made and
        receiving an activation, and a backward step by sending an activation and receiving a
        gradient. Its neighbour begins the opposite step with the same two messages. So both steps
        start when both neighbours have ended their previous ones, which the inputs of the passes
        demand anyway, and both are longer by the two messages. Only the first and last steps,
        which have one message or none, are too long: by at most 0.4 % of the measured runs' times.
        """
        down_s = [self.message_s(upper, upper, lower) for upper, lower in pairwise(stages)]
        up_s = [self.message_s(upper, lower, upper) for upper, lower in pairwise(stages)]
        forward_s = [stage.forward_s for stage in stages]
        backward_s = [stage.backward_s for stage in stages]
        for border, (upper, lower) in enumerate(pairwise(stages)):
            if self.rules.blocking:
                forward_s[border + 1] += up_s[border] + down_s[border]
                backward_s[border] += up_s[border] + down_s[border]
            if self.rules.in_node_gather:
                forward_s[border + 1] += self.gather_s(lower, upper.activation_bytes)
                backward_s[border] += self.gather_s(upper, upper.activation_bytes)
        if self.rules.blocking:
            down_s = up_s = [0.0] * len(down_s)
        return simulate_s(forward_s, backward_s, down_s, up_s, self.run.num_microbatches)

    def message_s(self, upper: StageForm, source: StageForm, target: StageForm) -> float:
        """Time of an activation that leaves ``upper``, or of its gradient on the way back. [s]"""
        num_bytes = upper.activation_bytes
        if self.rules.node_bandwidth:
            return num_bytes / self.network.node_bandwidth_bytes_per_s(
                source.gpu_type, target.gpu_type, self.run.tensor_parallel, num_bytes
            )
        assert upper.next_stage is not None, "checked when the run is read"
        return upper.next_stage.transfer_s(num_bytes)

    def gather_s(self, stage: StageForm, num_bytes: float) -> float:
        """Time in which the GPUs of a stage gather what each has received a part of. [s]"""
        num_gpus = self.run.tensor_parallel
        if num_gpus == 1:
            return 0.0
        bandwidth = self.network.gpu_bandwidth_bytes_per_s(
            stage.gpu_type, num_gpus, num_bytes / num_gpus
        )
        return all_gather_s(num_bytes, num_gpus, bandwidth)

    def reduce_s(self, replicas: Sequence[StageForm]) -> float:
        """Time of the gradient all-reduce of one stage over its replicas. [s]"""
        if len(replicas) == 1:
            return 0.0
        shard_bytes = max(stage.parameter_bytes for stage in replicas)
        slowest = min(
            self.ring_bandwidth_bytes_per_s(here, there, shard_bytes / len(replicas))
            for here, there in pairwise([*replicas, replicas[0]])
        )
        return ring_all_reduce_s(shard_bytes, len(replicas), slowest)

    def ring_bandwidth_bytes_per_s(
        self, here: StageForm, there: StageForm, chunk_bytes: float
    ) -> float:
        """Bandwidth of the ring of one GPU on the link between neighbouring replicas. [bytes/s]"""
        if not self.rules.node_bandwidth:
            assert here.replica is not None, "checked when the run is read"
            return here.replica.at(chunk_bytes)
        num_pairs = self.run.tensor_parallel
        whole = self.network.node_bandwidth_bytes_per_s(
            here.gpu_type, there.gpu_type, num_pairs, num_pairs * chunk_bytes
        )
        return whole / num_pairs

    def update_s(self, replicas: Sequence[StageForm]) -> float:
        """Time of the optimiser on the slowest replica of one stage. [s]"""
        return max(
            stage.update_s * (stage.update_share if self.rules.whole_update else 1.0)
            for stage in replicas
        )


def simulate_s(
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    down_s: Sequence[float],
    up_s: Sequence[float],
    num_microbatches: int,
) -> float:
    """Makespan of 1F1B in the simulator, of stages and messages that take these times. [s]

    A stage is a domain of 1 FLOP/s with one layer, and a message is 1 byte.

    Examples
    --------
    >>> simulate_s([1.0, 1.0], [2.0, 2.0], [0.5], [0.5], num_microbatches=1)
    7.0
    """
    borders = list(pairwise(range(len(forward_s))))
    ends = [*borders, *((lower, upper) for upper, lower in borders)]
    times_s = zip(forward_s, backward_s, strict=True)
    layers = [unit_layer(forward, backward / 2.0, backward / 2.0) for forward, backward in times_s]
    ways = {way: (time_s, 0.0) for way, time_s in zip(ends, [*down_s, *up_s], strict=True)}
    placement = Placement(domain_of_layer=tuple(range(len(layers))))
    return simulate(
        unit_topology(len(layers), ways),
        unit_workload("profiled stages", layers, num_microbatches),
        Plan(placement=placement, schedule="1f1b"),
    ).makespan_s
