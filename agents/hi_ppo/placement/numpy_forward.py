"""Scores of orders for one network without torch: what `PlacementPolicy.forward` does, in numpy.

For one network torch spends most of its time between its many small calls. Weights are read where
the modules have them, so training changes what is seen here too.
"""

from typing import cast

import numpy as np
from torch import Tensor, nn

from agents.hi_ppo.placement.decode import Scores
from agents.hi_ppo.placement.encoder import Encoder, Round
from agents.hi_ppo.placement.features import Features
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.pointer import Pointer
from des.compiled.many.layout import Observations


def quick_scores(policy: PlacementPolicy, features: Features) -> Scores:
    """Scores of one network, those of `policy` but for rounding."""
    nodes, edges, whole = _encoded(policy.encoder, features)
    return _pointed(policy.pointer, nodes, edges, whole)


def _encoded(
    encoder: Encoder, features: Features
) -> tuple[Observations, Observations, Observations]:
    """Descriptions of domains (K, W), of pairs (K, K, .) and of the network (W,)."""
    num_domains = len(features.nodes)
    everywhere = np.broadcast_to(features.whole, (num_domains, len(features.whole)))
    nodes = _relu(
        linear_forward(encoder.node, np.concatenate([features.nodes, everywhere], axis=1))
    )
    edges = _relu(
        linear_forward(encoder.edge_out, _relu(linear_forward(encoder.edge, features.edges)))
    )
    whole = _relu(linear_forward(encoder.whole, features.whole))
    heard = features.facts.can_follow.astype(np.float32)[..., np.newaxis]
    for one in encoder.rounds:
        nodes = _round(cast(Round, one), nodes, edges, whole, heard)
    gathered = np.concatenate(
        [nodes.sum(axis=0) / np.float32(num_domains), nodes.max(axis=0), whole]
    )
    return nodes, edges, _relu(linear_forward(encoder.gathered, gathered))


def _round(
    layers: Round,
    nodes: Observations,
    edges: Observations,
    whole: Observations,
    heard: Observations,
) -> Observations:
    """Descriptions of domains after a round; ``heard`` (K, K, 1) weighs who hears whom."""
    width = nodes.shape[1]
    sent = linear_forward(layers.sent, nodes)
    messages = linear_forward(layers.by_edge, edges)
    messages += sent[:, np.newaxis, :width]
    messages += sent[np.newaxis, :, width:]
    np.maximum(messages, np.float32(0.0), out=messages)
    messages *= heard
    mean = messages.sum(axis=1) / np.maximum(heard.sum(axis=1), np.float32(1.0))
    everywhere = np.broadcast_to(whole, nodes.shape)
    gathered = np.concatenate([nodes, mean, messages.max(axis=1), everywhere], axis=1)
    return _normed(
        layers.norm,
        nodes + linear_forward(layers.out, _relu(linear_forward(layers.mixed, gathered))),
    )


def _normed(layer: nn.LayerNorm, inputs: Observations) -> Observations:
    centred = inputs - _mean(inputs)
    variance = _mean(np.square(centred))
    outputs: Observations = centred / np.sqrt(variance + np.float32(layer.eps))
    return outputs * _numbers(layer.weight) + _numbers(layer.bias)


def _mean(inputs: Observations) -> Observations:
    means: Observations = np.add.reduce(inputs, axis=-1, keepdims=True)
    return means / np.float32(inputs.shape[-1])


def _pointed(
    pointer: Pointer, nodes: Observations, edges: Observations, whole: Observations
) -> Scores:
    num_domains, width = nodes.shape
    last, behind = (
        np.concatenate([nodes, (_numbers(one) + whole)[np.newaxis]])
        for one in (pointer.start, pointer.stop)
    )
    size = edges.shape[-1]
    between = np.empty((num_domains + 1, num_domains + 1, size), dtype=np.float32)
    between[:num_domains, :num_domains] = edges
    between[num_domains] = _numbers(pointer.begun)
    between[:, num_domains] = _numbers(pointer.stopped)
    mixed = linear_forward(pointer.by_edge, between)
    mixed += _half(pointer.ends, 0, last)[:, np.newaxis]
    mixed += _half(pointer.ends, 1, behind)[np.newaxis]
    mixed += linear_forward(pointer.by_whole, whole)
    pair = linear_forward(pointer.pair, _relu(mixed))
    chosen = _half(pointer.keys, 0, nodes) @ _half(pointer.keys, 1, behind).T / np.float32(width)
    options = np.concatenate([behind, np.broadcast_to(whole, behind.shape)], axis=1)
    return Scores(
        pair=np.ascontiguousarray(pair.transpose(2, 0, 1)),
        chosen=np.ascontiguousarray(chosen),
        drift=np.ascontiguousarray(linear_forward(pointer.drift, options).T),
    )


def linear_forward(layer: nn.Linear, inputs: Observations) -> Observations:
    """Outputs of a layer, (..., N)."""
    flat = inputs.reshape(-1, inputs.shape[-1])
    outputs: Observations = flat @ _numbers(layer.weight).T
    outputs += _numbers(layer.bias)
    return outputs.reshape(*inputs.shape[:-1], -1)


def _half(layer: nn.Linear, number: int, inputs: Observations) -> Observations:
    """Half of the outputs of a layer."""
    weight, bias = _numbers(layer.weight), _numbers(layer.bias)
    size = len(bias) // 2
    rows = slice(number * size, (number + 1) * size)
    outputs: Observations = inputs @ weight[rows].T + bias[rows]
    return outputs


def _relu(inputs: Observations) -> Observations:
    return np.maximum(inputs, np.float32(0.0))


def _numbers(parameter: Tensor) -> Observations:
    """The numbers of a parameter, not a copy."""
    numbers: Observations = parameter.detach().numpy()
    return numbers
