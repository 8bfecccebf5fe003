"""Probabilities, samples and gradients of actions, against enumeration and finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy
from torch import Tensor
from torch.distributions import Categorical

from agents.ppo.action_head import ActionHead, JointAction
from agents.ppo.distributions import Nominal, Ordinal, ordinal_z

SIZES = (3, 2, 81, 2, 81, 1, 7)
STARTS = (None, None, 0.3, None, None, None, 1.0)


def ordinal(location: float, scale: float, num_choices: int, dtype=torch.float32) -> Ordinal:
    """One component, a batch of one."""
    return Ordinal(
        location=torch.tensor([[location]], dtype=dtype),
        scale=torch.tensor([[scale]], dtype=dtype),
        last=torch.tensor([[num_choices - 1.0]], dtype=dtype),
    )


def log_probs_of(policy: Ordinal) -> Tensor:
    """Log-probabilities (n,) of all choices of one component."""
    return policy.log_prob(torch.arange(int(policy.last) + 1).unsqueeze(0))


def enumerated(location: float, scale: float, num_choices: int) -> np.ndarray:
    """Probabilities by the definition: the logistic's share between borders, tails to the ends."""
    borders = np.concatenate(([-np.inf], np.arange(num_choices - 1) + 0.5, [np.inf]))
    with np.errstate(over="ignore"):
        return np.diff(1 / (1 + np.exp(-(borders - location) / scale)))


@given(
    location=st.floats(-10, 110),
    log_scale=st.floats(math.log(0.09), 8),
    num_choices=st.integers(1, 100),
)
def test_ordinal_probabilities_are_those_of_the_definition_and_sum_to_one(
    location, log_scale, num_choices
):
    scale = math.exp(log_scale)
    log_probs = log_probs_of(ordinal(location, scale, num_choices))

    probabilities = log_probs.double().exp().numpy()
    np.testing.assert_allclose(
        probabilities, enumerated(location, scale, num_choices), atol=1e-5, rtol=1e-3
    )
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)


def test_improbable_choices_have_finite_log_probabilities():
    """At scale 0.09 around 0, choice k has probability exp(-(k - 1/2) / 0.09), to many digits."""
    log_probs = log_probs_of(ordinal(0.0, 0.09, 81)).tolist()

    for choice in (10, 40, 79):
        assert log_probs[choice] == pytest.approx(-(choice - 0.5) / 0.09, rel=1e-5)
    assert log_probs[80] == pytest.approx(-79.5 / 0.09, rel=1e-5)


@pytest.mark.parametrize(
    ("location", "scale"), [(40.3, 5.0), (-3.0, 2.0), (80.0, 0.09), (7.5, 1.0)]
)
def test_ordinal_samples_come_as_often_as_their_probabilities_say(location, scale):
    """Frequencies of 100000 samples are within five standard errors."""
    num_samples = 100_000
    uniform = torch.rand(1, num_samples, generator=torch.Generator().manual_seed(0))

    found = np.bincount(ordinal(location, scale, 81).sample(uniform)[0], minlength=81) / num_samples

    expected = enumerated(location, scale, 81)
    error = np.sqrt(expected * (1 - expected) / num_samples)
    assert (np.abs(found - expected) <= 5 * error + 1e-6).all()


@given(
    location=st.floats(-10, 20),
    log_scale=st.floats(math.log(0.09), 4),
    choice=st.integers(0, 6),
)
def test_ordinal_gradient_is_that_of_finite_differences(location, log_scale, choice):
    def terms(at: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        policy = Ordinal(location=at, scale=width, last=torch.tensor([[6.0]]).double())
        return policy.log_prob_and_entropy(torch.tensor([[choice]]))

    at, width = (
        torch.tensor([[value]], dtype=torch.float64, requires_grad=True)
        for value in (location, math.exp(log_scale))
    )
    assert torch.autograd.gradcheck(terms, (at, width), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("location", [-8.0, 0.0, 40.0, 80.0, 88.0])
@pytest.mark.parametrize("scale", [0.09, 1.0, 1e4])
def test_gradients_stay_finite_at_the_extremes(location, scale):
    for choice in (0, 1, 40, 79, 80):
        policy = ordinal(location, scale, 81)
        policy.location.requires_grad_()
        policy.scale.requires_grad_()
        log_prob, entropy = policy.log_prob_and_entropy(torch.tensor([[choice]]))
        (log_prob + entropy).sum().backward()
        assert policy.location.grad.isfinite().all()
        assert policy.scale.grad.isfinite().all()


@pytest.mark.parametrize("scale", [1.0, 2.0, 4.0])
def test_ordinal_entropy_is_close_to_that_of_the_choices(scale):
    """With the location in the middle of a range much wider than the scale, within 0.05 nats."""
    probabilities = enumerated(40.0, scale, 81)

    exact = -xlogy(probabilities, probabilities).sum()
    assert ordinal(40.0, scale, 81).entropy().item() == pytest.approx(exact, abs=0.05)


@given(z=st.floats(-8, 8), w=st.floats(-8, 8), num_choices=st.integers(1, 100))
def test_outputs_are_a_location_with_a_margin_and_a_scale_with_a_floor(z, w, num_choices):
    last = torch.tensor([[num_choices - 1.0]])
    policy = Ordinal.from_outputs(torch.tensor([[z]]), torch.tensor([[w]]), last)

    location = (num_choices - 1) * (1.2 / (1 + math.exp(-z)) - 0.1)
    assert policy.location.item() == pytest.approx(location, abs=1e-4)
    deviation = num_choices / 8 * math.exp(w)
    assert policy.scale.item() == pytest.approx(0.09 + deviation * math.sqrt(3) / math.pi, rel=1e-4)
    assert policy.mode().item() == min(max(round(policy.location.item()), 0), num_choices - 1)


def test_scale_is_at_its_floor_where_99_percent_are_on_the_nearest_choice():
    assert log_probs_of(ordinal(5.0, 0.09, 11))[5].exp().item() == pytest.approx(0.992, abs=0.001)


@given(share=st.floats(0, 1))
def test_ordinal_z_leads_to_the_share_of_the_range(share):
    policy = Ordinal.from_outputs(
        torch.tensor([[ordinal_z(share)]]), torch.zeros(1, 1), torch.tensor([[80.0]])
    )
    assert policy.location.item() == pytest.approx(80 * share, abs=1e-3)


def nominal(seed: int, batch_size: int = 4, dtype=torch.float64) -> Nominal:
    """Two components, of three and of two choices; padded."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(2, 3, batch_size, generator=generator, dtype=dtype)
    logits[1, 2] = -1e9
    return Nominal(logits=logits)


@pytest.mark.parametrize("seed", range(10))
def test_nominal_terms_are_the_sums_over_components(seed):
    policy = nominal(seed)
    choices = torch.tensor([[0, 1, 2, 2], [1, 0, 1, 0]])
    first = Categorical(logits=policy.logits[0].T)
    second = Categorical(logits=policy.logits[1, :2].T)

    log_prob, entropy = policy.log_prob_and_entropy(choices)

    torch.testing.assert_close(log_prob, first.log_prob(choices[0]) + second.log_prob(choices[1]))
    torch.testing.assert_close(entropy, first.entropy() + second.entropy())
    torch.testing.assert_close(log_prob, policy.log_prob(choices))
    torch.testing.assert_close(entropy, policy.entropy())
    assert torch.equal(policy.mode()[0], first.probs.argmax(-1))
    assert torch.equal(policy.mode()[1], second.probs.argmax(-1))


@pytest.mark.parametrize("seed", range(5))
def test_nominal_gradient_is_that_of_finite_differences(seed):
    choices = torch.tensor([[0, 1, 2, 2], [1, 0, 1, 0]])
    logits = nominal(seed).logits[:, :, :4].clone()
    logits[1, 2] = -50.0  # probabilities of 1e-22 rather than 0, so that differences are defined

    assert torch.autograd.gradcheck(
        lambda given: Nominal(logits=given).log_prob_and_entropy(choices),
        (logits.requires_grad_(),),
    )


def test_choices_that_a_component_does_not_have_get_no_gradient_and_are_never_sampled():
    policy = nominal(0, batch_size=50_000, dtype=torch.float32)
    policy.logits.requires_grad_()
    uniform = torch.rand(2, 50_000, generator=torch.Generator().manual_seed(0))
    uniform[:, 0], uniform[:, 1] = 0.0, 1 - 2**-24  # the first and the last there are

    choices = policy.sample(uniform)
    log_prob, entropy = policy.log_prob_and_entropy(choices)
    (log_prob + entropy).sum().backward()

    assert choices[0].unique().tolist() == [0, 1, 2]
    assert choices[1].unique().tolist() == [0, 1]
    assert choices[:, 0].tolist() == [0, 0]
    assert choices[:, 1].tolist() == [2, 1]
    assert (policy.logits.grad[1, 2] == 0).all()


def test_nominal_samples_come_as_often_as_their_probabilities_say():
    """Frequencies of 50000 samples are within five standard errors, for every component."""
    num_samples = 50_000
    policy = nominal(3, batch_size=1, dtype=torch.float32)
    uniform = torch.rand(2, num_samples, generator=torch.Generator().manual_seed(0))

    choices = Nominal(logits=policy.logits.expand(-1, -1, num_samples)).sample(uniform)

    for component, expected in zip(choices, policy.logits.softmax(1).squeeze(-1), strict=True):
        found = torch.bincount(component, minlength=3) / num_samples
        error = (expected * (1 - expected) / num_samples).sqrt()
        assert bool(((found - expected).abs() <= 5 * error + 1e-6).all())


def joint(batch_size: int = 16) -> JointAction:
    """Components of all kinds and sizes, mixed."""
    head = ActionHead(SIZES, STARTS)
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(head.num_outputs, batch_size, generator=generator)
    return head(*outputs.split(head.widths))


def test_joint_log_probability_is_the_sum_over_components_in_their_order():
    """Summed over all choices of one component, the others fixed, probabilities are those of it."""
    policy = joint()
    actions = policy.sample(torch.Generator().manual_seed(1))
    together = policy.log_prob(actions)

    rests = []
    for component, size in enumerate(SIZES):
        every_choice = []
        for choice in range(size):
            changed = actions.clone()
            changed[:, component] = choice
            every_choice.append(policy.log_prob(changed))
        rest = torch.stack(every_choice).logsumexp(dim=0)  # what the other components contribute
        rests.append(rest)
    own = torch.stack([together - rest for rest in rests])
    torch.testing.assert_close(own.sum(dim=0), together, rtol=1e-4, atol=1e-4)
    assert actions.shape == policy.mode().shape == (16, len(SIZES))
    assert (actions.max(dim=0).values < torch.tensor(SIZES)).all()
    assert (actions[:, 2].unique().numel(), actions[:, 5].unique().numel()) != (1, 1)


def test_joint_terms_agree_with_the_plain_formulas_in_value_and_gradient():
    head = ActionHead(SIZES, STARTS)
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(head.num_outputs, 16, generator=generator, requires_grad=True)
    weights = torch.randn(2, 16, generator=generator)
    actions = joint().sample(generator)

    gradients = []
    for fused in (True, False):
        policy = head(*outputs.split(head.widths))
        if fused:
            log_prob, entropy = policy.log_prob_and_entropy(actions)
        else:
            log_prob, entropy = policy.log_prob(actions), policy.entropy()
        loss = (weights[0] * log_prob + weights[1] * entropy).sum()
        gradients.append(torch.autograd.grad(loss, outputs)[0])

    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("starts", [(None, None), (0.0, 1.0)], ids=["all nominal", "all ordinal"])
def test_components_of_a_single_kind(starts):
    head = ActionHead((4, 9), starts)
    policy = head(*head.first_outputs().unsqueeze(1).expand(-1, 5000).split(head.widths))
    actions = policy.sample(torch.Generator().manual_seed(0))

    log_prob, entropy = policy.log_prob_and_entropy(actions)
    assert log_prob.isfinite().all()
    if starts == (None, None):
        assert log_prob[0].item() == pytest.approx(-math.log(36), rel=1e-5)
        assert entropy[0].item() == pytest.approx(math.log(36), rel=1e-5)
        assert [actions[:, i].unique().numel() for i in range(2)] == [4, 9]
    else:
        assert policy.mode()[0].tolist() == [0, 8]


def test_many_small_components_are_as_probable_as_one_by_one():
    """96 components of three choices each: a placement layer by layer."""
    head = ActionHead((3,) * 96, (None,) * 96)
    outputs = torch.randn(head.num_outputs, 8, generator=torch.Generator().manual_seed(0))
    policy = head(*outputs.split(head.widths))
    actions = policy.sample(torch.Generator().manual_seed(1))

    components = Categorical(logits=outputs.view(96, 3, 8).movedim(1, 2))
    expected = components.log_prob(actions.T).sum(dim=0)
    torch.testing.assert_close(policy.log_prob_and_entropy(actions)[0], expected)
