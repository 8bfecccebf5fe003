"""Scores of orders for one network without torch: what `PlacementPolicy.forward` does, in numpy.

For one network torch spends most of its time between its many small calls.
"""

import numpy as np

from agents.hi_ppo.placement.decode import Scores
from agents.hi_ppo.placement.features import Features
from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
from agents.ppo.trained_net import Numbers, linear_forward
from des.compiled.many.layout import Observations

_LEAST_VARIANCE = np.float32(1e-5)
"""Number that `torch.nn.LayerNorm` adds to variances."""


def quick_scores(policy: PlacementNet, features: Features) -> Scores:
    """Scores of one network, those of a policy of torch with these numbers but for rounding."""
    numbers = policy.numbers
    nodes, edges, whole = _encode(numbers, policy.architecture.num_rounds, features)
    return _pointed(numbers, nodes, edges, whole)


def _encode(
    numbers: Numbers, num_rounds: int, features: Features
) -> tuple[Observations, Observations, Observations]:
    """Descriptions of domains (K, W), of pairs (K, K, .) and of the network (W,)."""
    num_domains = len(features.nodes)
    everywhere = np.broadcast_to(features.whole, (num_domains, len(features.whole)))
    nodes = np.concatenate([features.nodes, everywhere], axis=1)
    nodes = _relu(linear_forward(numbers, "encoder.node", nodes))
    edges = _relu(linear_forward(numbers, "encoder.edge", features.edges))
    edges = _relu(linear_forward(numbers, "encoder.edge_out", edges))
    whole = _relu(linear_forward(numbers, "encoder.whole", features.whole))
    heard = features.facts.can_follow.astype(np.float32)[..., np.newaxis]
    for number in range(num_rounds):
        nodes = _round(numbers, f"encoder.rounds.{number}", (nodes, edges, whole), heard)
    gathered = np.concatenate(
        [nodes.sum(axis=0) / np.float32(num_domains), nodes.max(axis=0), whole]
    )
    return nodes, edges, _relu(linear_forward(numbers, "encoder.gathered", gathered))


def _round(
    numbers: Numbers,
    name: str,
    encoded: tuple[Observations, Observations, Observations],
    heard: Observations,
) -> Observations:
    """Descriptions of domains after a round; ``heard`` (K, K, 1) weighs who hears whom."""
    nodes, edges, whole = encoded
    width = nodes.shape[1]
    sent = linear_forward(numbers, f"{name}.sent", nodes)
    messages = linear_forward(numbers, f"{name}.by_edge", edges)
    messages += sent[:, np.newaxis, :width]
    messages += sent[np.newaxis, :, width:]
    np.maximum(messages, np.float32(0.0), out=messages)
    messages *= heard
    mean = messages.sum(axis=1) / np.maximum(heard.sum(axis=1), np.float32(1.0))
    everywhere = np.broadcast_to(whole, nodes.shape)
    gathered = np.concatenate([nodes, mean, messages.max(axis=1), everywhere], axis=1)
    mixed = _relu(linear_forward(numbers, f"{name}.mixed", gathered))
    return _normed(numbers, f"{name}.norm", nodes + linear_forward(numbers, f"{name}.out", mixed))


def _normed(numbers: Numbers, name: str, inputs: Observations) -> Observations:
    centred = inputs - _mean(inputs)
    variance = _mean(np.square(centred))
    outputs: Observations = centred / np.sqrt(variance + _LEAST_VARIANCE)
    return outputs * numbers[f"{name}.weight"] + numbers[f"{name}.bias"]


def _mean(inputs: Observations) -> Observations:
    means: Observations = np.add.reduce(inputs, axis=-1, keepdims=True)
    return means / np.float32(inputs.shape[-1])


def _pointed(
    numbers: Numbers, nodes: Observations, edges: Observations, whole: Observations
) -> Scores:
    num_domains, width = nodes.shape
    last, behind = (
        np.concatenate([nodes, (numbers[f"pointer.{name}"] + whole)[np.newaxis]])
        for name in ("start", "stop")
    )
    size = edges.shape[-1]
    between = np.empty((num_domains + 1, num_domains + 1, size), dtype=np.float32)
    between[:num_domains, :num_domains] = edges
    between[num_domains] = numbers["pointer.begun"]
    between[:, num_domains] = numbers["pointer.stopped"]
    mixed = linear_forward(numbers, "pointer.by_edge", between)
    mixed += _half(numbers, "pointer.ends", 0, last)[:, np.newaxis]
    mixed += _half(numbers, "pointer.ends", 1, behind)[np.newaxis]
    mixed += linear_forward(numbers, "pointer.by_whole", whole)
    pair = linear_forward(numbers, "pointer.pair", _relu(mixed))
    query, key = (
        _half(numbers, "pointer.keys", row, one) for row, one in enumerate((nodes, behind))
    )
    options = np.concatenate([behind, np.broadcast_to(whole, behind.shape)], axis=1)
    return Scores(
        pair=np.ascontiguousarray(pair.transpose(2, 0, 1)),
        chosen=np.ascontiguousarray(query @ key.T / np.float32(width)),
        drift=np.ascontiguousarray(linear_forward(numbers, "pointer.drift", options).T),
    )


def _half(numbers: Numbers, name: str, number: int, inputs: Observations) -> Observations:
    """Half of the outputs of a layer."""
    weight, bias = numbers[f"{name}.weight"], numbers[f"{name}.bias"]
    size = len(bias) // 2
    rows = slice(number * size, (number + 1) * size)
    outputs: Observations = inputs @ weight[rows].T + bias[rows]
    return outputs


def _relu(inputs: Observations) -> Observations:
    return np.maximum(inputs, np.float32(0.0))
