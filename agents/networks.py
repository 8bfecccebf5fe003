"""Actor and critic for vector observations and actions of several discrete components."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_CONSTANT_DEVIATION_FRACTION = 1e-6  # a float32 resolves about 1e-7 of its own size
_LARGEST_NORMALISED = 10.0
_LOCATION_MARGIN_FRACTION = 0.1
_SMALLEST_SCALE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Everything that decides the shapes of the weights.

    ``action_sizes[i]`` is the number of choices of action component i. ``ordinal_starts[i]`` is
    None for plain categories; for ordered choices, of which neighbours have similar value, it is
    where the first policy looks, as a share of the range: 0 is the first choice, 1 the last.
    """

    observation_size: int
    action_sizes: tuple[int, ...]
    ordinal_starts: tuple[float | None, ...]
    hidden_sizes: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        checks = (
            ("observation_size", self.observation_size >= 1, "at least 1"),
            (
                "action_sizes",
                len(self.action_sizes) >= 1 and min(self.action_sizes) >= 1,
                "one or more sizes of at least 1",
            ),
            (
                "ordinal_starts",
                len(self.ordinal_starts) == len(self.action_sizes)
                and all(start is None or 0 <= start <= 1 for start in self.ordinal_starts),
                f"None or within [0, 1] for each of {len(self.action_sizes)} action components",
            ),
            ("hidden_sizes", all(size >= 1 for size in self.hidden_sizes), "all at least 1"),
        )
        for field, holds, allowed in checks:
            if not holds:
                raise ValueError(
                    f"architecture: {field} must be {allowed}, got {getattr(self, field)!r}"
                )


class RunningNormaliser(nn.Module):
    """Standardise every entry of an observation by the mean and deviation seen so far.

    Only ``update`` learns; calling the module never does. An entry that has not varied (its
    deviation is below 1e-6 of its mean, which float32 cannot tell from noise) gives 0. Results
    saturate at +-10, so an entry that starts to move after a constant past cannot swamp the rest.
    """

    count: Tensor
    mean: Tensor
    sum_of_squares: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("sum_of_squares", torch.zeros(size, dtype=torch.float64))

    @property
    def variance(self) -> Tensor:
        """Population variance (D,) of everything seen; 0 before the first update."""
        return self.sum_of_squares / self.count.clamp(min=1.0)

    @torch.no_grad()
    def update(self, observations: Tensor) -> None:
        """Merge a batch (B, D) into the running moments.

        References
        ----------
        .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample
           variance", The American Statistician 37(3), 1983.
        """
        batch = observations.double()
        batch_mean = batch.mean(dim=0)
        total = self.count + len(batch)
        shift = batch_mean - self.mean
        self.sum_of_squares += (batch - batch_mean).square().sum(dim=0)
        self.sum_of_squares += shift.square() * (self.count * len(batch) / total)
        self.mean += shift * (len(batch) / total)
        self.count.copy_(total)

    def forward(self, observations: Tensor) -> Tensor:
        """Standardised observations (B, D), float32."""
        deviation = self.variance.sqrt()
        varies = deviation > _CONSTANT_DEVIATION_FRACTION * self.mean.abs()
        precision = torch.where(varies, 1.0 / torch.where(varies, deviation, 1.0), 0.0)
        standardised = (observations.double() - self.mean) * precision
        return standardised.clamp(-_LARGEST_NORMALISED, _LARGEST_NORMALISED).float()


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiCategorical:
    """A joint action whose components are independent and categorical.

    Components with the same number of choices are one tensor: ``log_probs[g]`` (B, G, n) are those
    of ``components[g]`` (G,), so nothing is padded and loops are over distinct sizes.
    """

    components: tuple[Tensor, ...]
    log_probs: tuple[Tensor, ...]

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (B,) of joint actions (B, A)."""
        chosen = [
            log_probs.gather(-1, actions[:, components].unsqueeze(-1)).sum(dim=(-2, -1))
            for components, log_probs in zip(self.components, self.log_probs, strict=True)
        ]
        return torch.stack(chosen).sum(dim=0)

    def entropy(self) -> Tensor:
        """Entropy (B,) of the joint action: the sum over components. [nats]"""
        entropies = [-(group.exp() * group).sum(dim=(-2, -1)) for group in self.log_probs]
        return torch.stack(entropies).sum(dim=0)

    def mode(self) -> Tensor:
        """Most likely joint actions (B, A)."""
        return self._joined([group.argmax(dim=-1) for group in self.log_probs])

    def sample(self, generator: torch.Generator) -> Tensor:
        """Joint actions (B, A) by inversion: one uniform number per component."""
        return self._joined([_inverted(group, generator) for group in self.log_probs])

    def _joined(self, choices: Sequence[Tensor]) -> Tensor:
        """Choices (B, G) of every group, back in the order of the components."""
        return torch.cat(tuple(choices), dim=1)[:, torch.cat(self.components).argsort()]


def _inverted(log_probs: Tensor, generator: torch.Generator) -> Tensor:
    """Sample (B, G) from ``log_probs`` (B, G, n)."""
    cumulative = log_probs.double().exp().cumsum(dim=-1)
    total = cumulative[..., -1:]  # not exactly 1
    uniform = torch.rand(total.shape, generator=generator, dtype=torch.float64)
    return torch.searchsorted(cumulative, uniform * total, right=True).squeeze(-1)


def ordinal_logits(z: Tensor, w: Tensor, num_choices: int) -> Tensor:
    """Logits (..., n) of a discretised Gaussian over n ordered choices, from two numbers (...).

    The logit of choice k = 0..n-1 is ``-((k - location) / scale)**2 / 2``, with

    - ``location = (n - 1) * (1.2 * sigmoid(z) - 0.1)``: z = 0 is the middle, and the first and
      last choice are reached at z = -+2.4 already, not only at infinity;
    - ``scale = 0.3 + n / 8 * exp(w)``: 0.3 + n / 8 at w = 0, and never below 0.3, where 99 % of
      the probability is on the nearest choice if the location is on it.

    Examples
    --------
    >>> ordinal_logits(torch.tensor(0.0), torch.tensor(0.0), 81).argmax().item()
    40
    """
    location = (num_choices - 1) * (
        (1 + 2 * _LOCATION_MARGIN_FRACTION) * z.sigmoid() - _LOCATION_MARGIN_FRACTION
    )
    scale = _SMALLEST_SCALE + num_choices / 8 * w.exp()
    choices = torch.arange(num_choices, dtype=z.dtype)
    return -((choices - location.unsqueeze(-1)) / scale.unsqueeze(-1)).square() / 2


def ordinal_z(share: float) -> float:
    """Inverse of the location: z at which it is ``share`` of the way from first to last choice."""
    return math.log(share + _LOCATION_MARGIN_FRACTION) - math.log(
        1 - share + _LOCATION_MARGIN_FRACTION
    )


class ActionHead:
    """Turn network outputs into a distribution over actions of several components.

    A nominal component of n choices takes n outputs, its logits; an ordinal one takes two, z and w
    of ``ordinal_logits``, whatever n is. Components alike in kind and size are together: their
    logits, or every z and then every w.
    """

    def __init__(self, action_sizes: Sequence[int], ordinal_starts: Sequence[float | None]) -> None:
        self._starts = tuple(ordinal_starts)
        kinds = [
            (size, start is not None)
            for size, start in zip(action_sizes, ordinal_starts, strict=True)
        ]
        self._kinds = sorted(set(kinds))
        self._components = tuple(
            torch.tensor([i for i, other in enumerate(kinds) if other == kind])
            for kind in self._kinds
        )
        self._widths = [
            len(components) * (2 if ordered else size)
            for components, (size, ordered) in zip(self._components, self._kinds, strict=True)
        ]
        self.num_outputs = sum(self._widths)

    def distribution(self, outputs: Tensor) -> MultiCategorical:
        """Distribution of B joint actions from outputs (B, ``num_outputs``)."""
        log_probs = []
        for block, (size, ordered) in zip(self._blocks(outputs), self._kinds, strict=True):
            if ordered:
                z, w = block.chunk(2, dim=-1)
                logits = ordinal_logits(z, w, size)
            else:
                logits = block.reshape(len(block), -1, size)
            log_probs.append(functional.log_softmax(logits, dim=-1))
        return MultiCategorical(components=self._components, log_probs=tuple(log_probs))

    def first_outputs(self) -> Tensor:
        """Outputs (``num_outputs``,) that put ordinal locations where they start."""
        outputs = torch.zeros(self.num_outputs)
        for block, components in zip(self._blocks(outputs), self._components, strict=True):
            for place, component in enumerate(components.tolist()):
                start = self._starts[component]
                if start is not None:
                    block[place] = ordinal_z(start)
        return outputs

    def _blocks(self, outputs: Tensor) -> tuple[Tensor, ...]:
        return torch.functional.split(outputs, self._widths, dim=-1)


class ActorCritic(nn.Module):
    """Separate tanh networks for policy and value over normalised observations.

    All methods take raw observations (B, D). Weights are orthogonal, drawn from ``generator``
    only; the last layers are so small that the first policy is nearly the same everywhere (uniform
    over nominal components, around their start over ordinal ones) and the first values nearly 0.
    """

    def __init__(self, architecture: Architecture, generator: torch.Generator) -> None:
        super().__init__()
        self.architecture = architecture
        self.normaliser = RunningNormaliser(architecture.observation_size)
        self.head = ActionHead(architecture.action_sizes, architecture.ordinal_starts)
        body = (architecture.observation_size, *architecture.hidden_sizes)
        self.actor = _tanh_network((*body, self.head.num_outputs), 0.01, generator)
        self.critic = _tanh_network((*body, 1), 0.01, generator)
        last = self.actor[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.bias.copy_(self.head.first_outputs())

    def act(self, observations: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample actions (B, A); return them with their log-probabilities (B,)."""
        policy = self.policy(observations)
        actions = policy.sample(generator)
        return actions, policy.log_prob(actions)

    def greedy(self, observations: Tensor) -> Tensor:
        """Most likely actions (B, A)."""
        return self.policy(observations).mode()

    def policy(self, observations: Tensor) -> MultiCategorical:
        """Distribution of the joint action at every observation."""
        return self.head.distribution(self.actor(self.normaliser(observations)))

    def value(self, observations: Tensor) -> Tensor:
        """Value (B,) of every observation."""
        values: Tensor = self.critic(self.normaliser(observations))
        return values.squeeze(-1)


def _tanh_network(
    sizes: Sequence[int], last_gain: float, generator: torch.Generator
) -> nn.Sequential:
    """Linear layers with tanh between them, orthogonal weights and zero biases."""
    layers: list[nn.Module] = []
    gains = [math.sqrt(2)] * (len(sizes) - 2) + [last_gain]
    for num_inputs, num_outputs, gain in zip(sizes[:-1], sizes[1:], gains, strict=True):
        # By way of meta, as the default initialisation would draw from the global generator.
        layer = nn.Linear(num_inputs, num_outputs, device="meta").to_empty(device="cpu")
        nn.init.orthogonal_(layer.weight, gain, generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])
