"""Passes of a stage over microbatches: forward, whole backward, and its two halves."""

from collections.abc import Sequence

import torch
from torch import Tensor

from scenarios.rehearse.small_llama import HIDDEN, SEQUENCE, SEQUENCES, LlamaStage, text_batch

_SHAPE = (SEQUENCES, SEQUENCE, HIDDEN)


class StagePasses:
    """A stage of one replica with what its passes leave for later ones.

    Gradients are those of the sum of losses times ``weight``.
    """

    def __init__(self, model: LlamaStage, first_microbatch: int, weight: float) -> None:
        self.model = model
        self.loss = 0.0
        self._weight, self._step = weight, 0
        self._first_microbatch = first_microbatch
        self._parameters = list(model.parameters())
        self._forward: dict[int, tuple[Tensor, Tensor]] = {}
        self._gradients: dict[int, Tensor | None] = {}

    def begin(self, step: int) -> None:
        """Begin a step without gradients."""
        self._step, self.loss = step, 0.0
        self.model.zero_grad()

    def do(self, kind: str, microbatch: int, content: Tensor | None) -> Tensor | None:
        """Do a pass F, B, I or W with the values that have come for it; values to send, if any."""
        if kind == "F":
            return self._do_forward(microbatch, content)
        if kind == "W":
            out = self._forward.pop(microbatch)[1]
            self._add(None, out, self._gradients.pop(microbatch))
            return None
        gradient = None if content is None else content.view(_SHAPE)
        x, out = self._forward[microbatch]
        if kind == "B":
            del self._forward[microbatch]
            return self._add(x if x.requires_grad else None, out, gradient)
        self._gradients[microbatch] = gradient
        if not x.requires_grad:
            return None
        own: tuple[Tensor, ...] = torch.autograd.grad(out, x, gradient, retain_graph=True)
        return own[0].flatten()

    def _do_forward(self, microbatch: int, content: Tensor | None) -> Tensor | None:
        device = self._parameters[0].device
        batch = text_batch(self._step, self._first_microbatch + microbatch)
        tokens, targets = (one.to(device) for one in batch)
        x = tokens if content is None else content.view(_SHAPE).requires_grad_()
        out: Tensor = self.model(x, targets)
        self._forward[microbatch] = x, out
        if out.dim():
            return out.detach().flatten()
        self.loss += self._weight * out.item()
        self._forward[microbatch] = x, out * self._weight
        return None

    def _add(self, x: Tensor | None, out: Tensor, gradient: Tensor | None) -> Tensor | None:
        """Add gradients of parameters; return that of the input, if there is one."""
        inputs: Sequence[Tensor] = (*self._parameters, *(() if x is None else (x,)))
        own: tuple[Tensor, ...] = torch.autograd.grad(out, inputs, gradient)
        for parameter, one in zip(self._parameters, own, strict=False):
            parameter.grad = one if parameter.grad is None else parameter.grad + one
        return None if x is None else own[-1].flatten()
