"""The placement policy: what it sees, what it may choose, and that it learns."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from search_cases import drawn_case
from small_policies import save_placement

from agents.hi_ppo.placement.config import PlacementArchitecture, PlacementConfig
from agents.hi_ppo.placement.decode import seeded_noise
from agents.hi_ppo.placement.features import Features, features_of
from agents.hi_ppo.placement.numpy_forward import quick_scores
from agents.hi_ppo.placement.placement_checkpoint import load_placement
from agents.hi_ppo.placement.placement_policy import (
    PlacementPolicy,
    decode_orders,
    draw_noise,
    orders_of,
    scores_of,
)
from agents.hi_ppo.placement.placement_training import PlacementTrainer
from agents.hi_ppo.placement.pointer import log_probs_of, networks_of
from agents.judge.look_ahead import PlanJudge
from agents.judge.steady_judge import SteadyJudge
from agents.planners.search.search import search
from agents.planners.search.search_moves import all_orders, plans_of_orders
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from des import Plan, Topology, Workload
from des.world.domain_load import DomainLoad

SMALL = PlacementArchitecture(width=16, edge_width=8, num_rounds=2)


def small_policy(seed: int = 0, architecture: PlacementArchitecture = SMALL) -> PlacementPolicy:
    return PlacementPolicy(architecture, torch.Generator().manual_seed(seed))


def seen(topology: Topology, workload: Workload, last_plan: Plan | None = None) -> Features:
    job = SteadyJudge(workload, topology.num_domains).job_of(topology)
    return features_of(topology, job, job, last_plan=last_plan)


def renumbered(topology: Topology, numbers: list[int]) -> Topology:
    """The same network with domain ``numbers[i]`` at position i."""
    return Topology.of([topology.domains[number] for number in numbers], topology.links)


@pytest.mark.parametrize("num_rounds", [0, 3])
def test_renumbering_domains_renumbers_descriptions_and_scores(num_rounds: int) -> None:
    topology, workload = drawn_case(3, 5, 12)
    numbers = [3, 0, 4, 1, 2]
    policy = small_policy(architecture=replace(SMALL, num_rounds=num_rounds))

    features = [seen(topology, workload), seen(renumbered(topology, numbers), workload)]
    encoded, scores = policy(networks_of(features))

    torch.testing.assert_close(encoded.nodes[1], encoded.nodes[0][numbers])
    options = [*numbers, 5]
    torch.testing.assert_close(scores.pair[1], scores.pair[0][:, options][:, :, options])
    torch.testing.assert_close(scores.chosen[1], scores.chosen[0][numbers][:, options])


def test_absent_domains_do_not_count() -> None:
    small, large = (seen(*drawn_case(seed, size, 12)) for seed, size in ((1, 3), (2, 6)))
    policy = small_policy()

    with torch.no_grad():
        alone, beside = policy(networks_of([small])), policy(networks_of([small, large]))

    torch.testing.assert_close(beside[0].nodes[0, :3], alone[0].nodes[0])
    for one, other in zip(scores_of(beside[1], 0, 3), scores_of(alone[1], 0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_units_do_not_count(scale: float) -> None:
    """A network and devices quicker by the same factor look the same, and so does a larger memory
    for a larger model."""
    topology, workload = drawn_case(5, 4, 12)
    job = SteadyJudge(workload, 4).job_of(topology)
    scaled = job._replace(
        rate_flops_per_s=job.rate_flops_per_s * scale,
        wire_s=job.wire_s / scale,
        latency_s=job.latency_s / scale,
        capacity_bytes=job.capacity_bytes * scale,
        bytes_per_parameter=job.bytes_per_parameter * scale,
    )

    one, other = (features_of(topology, each, each) for each in (job, scaled))

    np.testing.assert_allclose(other.nodes, one.nodes, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.edges, one.edges, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.whole, one.whole, rtol=1e-5, atol=1e-6)


def test_figures_that_are_no_numbers_are_refused() -> None:
    topology, workload = drawn_case(5, 4, 12)
    job = SteadyJudge(workload, 4).job_of(topology)
    broken = job._replace(rate_flops_per_s=np.array([1.0, np.nan, 1.0, 1.0]))

    with pytest.raises(ValueError, match="placement features: nodes must be finite"):
        features_of(topology, job, broken)


def test_orders_have_the_probabilities_of_the_teacher_forced_pointer() -> None:
    cases = [drawn_case(seed, size, 12) for seed, size in ((0, 4), (1, 7))]
    features = [seen(*case) for case in cases]
    networks, policy = networks_of(features), small_policy()
    with torch.no_grad():
        scores = policy(networks)[1]
        scores = scores._replace(pair=20.0 * scores.pair)
        generator = torch.Generator().manual_seed(1)
        drawn = [
            decode_orders(
                scores_of(scores, row, size), one.facts, draw_noise(64, size, generator), size
            )
            for row, (one, size) in enumerate(zip(features, (4, 7), strict=True))
        ]
        expected, entropy = log_probs_of(networks, scores, orders_of(drawn), torch.tensor([4, 7]))

    np.testing.assert_allclose(
        np.stack([one.log_probs for one in drawn]), expected, rtol=1e-4, atol=1e-4
    )
    assert (entropy >= 0.0).all()


def test_probabilities_of_all_orders_add_up_to_one() -> None:
    """Samples come as often as their probabilities say, which add up to 1 over all orders."""
    features = seen(*drawn_case(4, 3, 12))
    with torch.no_grad():
        scores = scores_of(small_policy()(networks_of([features]))[1], 0)
    noise = draw_noise(20_000, 3, torch.Generator().manual_seed(0))

    drawn = decode_orders(scores, features.facts, noise, 3)

    orders = [
        tuple(row[:size].tolist()) for row, size in zip(drawn.domains, drawn.sizes, strict=True)
    ]
    probabilities = dict(zip(orders, np.exp(drawn.log_probs).tolist(), strict=True))
    assert set(probabilities) <= set(all_orders(3, 3))
    assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-3)
    for order, probability in probabilities.items():
        assert orders.count(order) / 20_000 == pytest.approx(probability, abs=0.02)


def test_orders_hold_the_model_and_keep_to_links() -> None:
    """None stops before the memory is enough, none goes where no link leads, none comes twice."""
    topology, workload = drawn_case(6, 6, 12)
    job = SteadyJudge(workload, 6).job_of(topology)
    state_bytes = job.bytes_per_parameter * job.sums_before[-1, -1]
    wire_s = job.wire_s.copy()
    wire_s[0, 1] = np.inf
    tight = job._replace(capacity_bytes=np.full(6, 0.3 * state_bytes), wire_s=wire_s)
    features = features_of(topology, job, tight)
    with torch.no_grad():
        scores = scores_of(small_policy()(networks_of([features]))[1], 0)
    noise = draw_noise(500, 6, torch.Generator().manual_seed(0))

    drawn = decode_orders(scores, features.facts, noise, 5)

    assert drawn.sizes.min() == 4  # three times 0.3 are not enough
    assert drawn.sizes.max() == 5
    for row, size in zip(drawn.domains, drawn.sizes.tolist(), strict=True):
        order = row[:size].tolist()
        assert len(set(order)) == size
        assert not any({one, other} == {0, 1} for one, other in itertools.pairwise(order))


def test_the_last_plan_and_loads_are_seen() -> None:
    topology, workload = drawn_case(6, 4, 12)
    plan = search(topology, workload).plan
    job = SteadyJudge(workload, 4).job_of(topology)
    loads = (DomainLoad(utilisation=0.5, queue_length=2.0), *(DomainLoad(),) * 3)

    features = features_of(topology, job, job, last_plan=plan, loads=loads)

    assert features.nodes[0, 4:7] == pytest.approx([0.5, 0.0, np.log(3.0)])
    assert features.nodes[:, 7].mean() == pytest.approx(1.0)  # layers over an even share
    stages = plan.placement.stages
    assert features.edges[:, :, 8].sum() == len(stages) - 1
    assert features.nodes[:, 9].sum() == len(stages)


CONFIG = PlacementConfig(
    num_updates=100,
    worlds_per_update=2,
    samples_per_world=16,
    learning_rate=3e-3,
    imitation=0.0,
    look_ahead_budget=0,
    curriculum=((16, 0.0),),
)


def trained(num_updates: int, config: PlacementConfig, seed: int = 0) -> PlacementTrainer:
    topology, workload = drawn_case(8, 4, 12)
    source = itertools.repeat((topology, topology, workload))
    trainer = PlacementTrainer(source, seed=seed, architecture=SMALL, config=config)
    for _ in range(num_updates):
        trainer.step()
    return trainer


def test_the_best_order_of_one_network_is_learnt() -> None:
    """By the rewards alone: no look-ahead shows it."""
    topology, workload = drawn_case(8, 4, 12)
    judge = PlanJudge(workload, 4)
    job = judge.job_of(topology)
    orders = list(all_orders(4, 4))
    plans = plans_of_orders(orders, range(5), 4)
    judge.fill_by(job, plans, np.ones(plans.domain.shape))
    times_s = judge.scores(job, plans)

    policy = trained(CONFIG.num_updates, CONFIG).policy
    own, row = policy.best_plan(seen(topology, workload), judge, job)

    assert judge.scores(job, own)[row] <= 1.03 * times_s.min()
    assert judge.scores(job, own)[row] < 0.9 * np.median(times_s[np.isfinite(times_s)])


def test_equal_seeds_give_equal_weights(tmp_path) -> None:
    config = replace(CONFIG, imitation=0.5, look_ahead_budget=100)
    for name, seed in (("one", 3), ("same", 3), ("other", 4)):
        save_placement(tmp_path / name, trained(2, config, seed).policy)

    one, same, other = ((tmp_path / name).read_bytes() for name in ("one", "same", "other"))
    assert one == same != other


def test_a_policy_comes_back_from_its_file(tmp_path) -> None:
    policy, features = small_policy(), seen(*drawn_case(3, 5, 12))
    save_placement(tmp_path / "policy.safetensors", policy)

    back = load_placement(tmp_path / "policy.safetensors")

    assert back.architecture == SMALL
    for one, other in zip(
        quick_scores(policy, features), quick_scores(back, features), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert PlacementPolicy.of(back).state_dict().keys() == policy.state_dict().keys()


def test_noise_of_a_seed_is_that_of_a_generator_of_torch() -> None:
    """Both are seeded as the Mersenne twister's authors do it; logarithms differ in rounding."""
    for seed in (0, 5, 2**31 + 1):
        expected = draw_noise(6, 4, torch.Generator().manual_seed(seed))
        np.testing.assert_allclose(seeded_noise(6, 4, seed)[1:], expected[1:], rtol=2e-6, atol=1e-6)
    assert not seeded_noise(6, 4, 0)[0].any()


def test_other_files_are_refused(tmp_path) -> None:
    path = tmp_path / "policy.safetensors"
    save_checkpoint(path, {"kind": "another"})
    with pytest.raises(CheckpointError, match=r"kind must be 'placement_policy', got 'another'"):
        load_placement(path)

    save_placement(path, small_policy())
    payload = load_checkpoint(path)
    save_checkpoint(path, {**payload, "architecture": {"width": 8}})
    with pytest.raises(CheckpointError, match="must hold an architecture and parameters"):
        load_placement(path)
