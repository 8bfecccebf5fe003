"""Files of policies: what is written is read, and nothing else is."""

from dataclasses import replace

import pytest
import torch
from small_policies import THREE, placement_policy, policies, save_placement, situation_on, slowed

from agents.hi_ppo.coordinator import coordinator_of
from agents.hi_ppo.policies import Policies, digest_of, shipped, shipped_files
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "hi_ppo-0.safetensors"
    policies().save(path)
    return path


@pytest.mark.parametrize("moves", [False, True])
def test_what_was_read_is_written_as_it_was(tmp_path, moves):
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    given = policies(moves=moves)
    given.save(first)
    read = Policies.load(first)
    read.save(second)

    assert first.read_bytes() == second.read_bytes()
    assert digest_of(first) == digest_of(second)
    assert (read.trained_range, read.training) == (given.trained_range, given.training)
    assert (read.moves is None) == (not moves)


@pytest.mark.parametrize("moves", [False, True])
def test_what_was_read_decides_as_what_was_written(tmp_path, moves):
    path = tmp_path / "policies.safetensors"
    policies(3, moves=moves).save(path)
    one, other = coordinator_of(policies(3, moves=moves)), coordinator_of(Policies.load(path))
    last = None
    for epoch, factor in enumerate((1.0, 0.3, 2.0)):
        situation = situation_on(
            slowed(THREE, factor, "West"), base=THREE, epoch=epoch, last_plan=last
        )
        last = one.decide(situation).plan
        assert other.decide(situation).plan == last


def test_policies_of_other_seeds_are_other_files(tmp_path, saved):
    other = tmp_path / "other.safetensors"
    policies(1).save(other)
    assert digest_of(other) != digest_of(saved)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "placement.safetensors"
    save_placement(path, placement_policy())
    with pytest.raises(
        CheckpointError, match=r"placement\.safetensors: kind must be hi_ppo, got 'placement_"
    ):
        Policies.load(path)


def test_a_damaged_or_missing_file_is_refused(tmp_path, saved):
    damaged = tmp_path / "damaged.safetensors"
    content = bytearray(saved.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged\.safetensors: must be an intact"):
        Policies.load(damaged)
    with pytest.raises(CheckpointError, match=r"none\.safetensors: must be an intact"):
        Policies.load(tmp_path / "none.safetensors")


def changed(path, part: str, **changes: object):
    """Write the content with something changed in one of its parts."""
    payload = load_checkpoint(path)
    payload[part] = {**payload[part], **changes}
    save_checkpoint(path, payload)


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("placement", {"architecture": {"width": 32, "edge_width": 8, "num_rounds": 1}}, "sizes"),
        ("placement", {"depths": ["gpipe"]}, "depths must be"),
        ("moves", {"parameters": {"weight": torch.zeros(2)}}, "move"),
        ("trained_range", {"num_domains": [3.0, 1.0]}, "num_domains must have a least"),
        ("trained_range", {"colour": [0.0, 1.0]}, "trained range: must hold num_domains"),
        ("trained_range", {"ratio": [0.5]}, "ratio must be a least and a most"),
    ],
)
def test_policies_of_another_architecture_or_range_are_refused(saved, part, changes, message):
    changed(saved, part, **changes)
    with pytest.raises(CheckpointError, match=rf"hi_ppo-0\.safetensors: .*{message}"):
        Policies.load(saved)


@pytest.mark.parametrize("part", ["placement", "moves", "trained_range", "training"])
@pytest.mark.parametrize("content", ["text", [1.0]])
def test_parts_that_are_something_else_are_refused(saved, part, content):
    payload = load_checkpoint(saved)
    payload[part] = content
    save_checkpoint(saved, payload)
    with pytest.raises(CheckpointError, match=r"hi_ppo-0\.safetensors: "):
        Policies.load(saved)


def test_a_shipped_policy_is_named_by_its_seed():
    seeds = [int(path.stem.removeprefix("hi_ppo-")) for path in shipped_files()]

    assert [shipped(seed) for seed in seeds] == shipped_files()
    message = r"shipped weights of hi_ppo: seed must be one of .*; got 987"
    with pytest.raises(ValueError, match=message):
        shipped(987)


def test_the_range_is_that_of_the_training(saved):
    read = Policies.load(saved)
    assert read.trained_range.num_domains == (3.0, 3.0)
    assert read == replace(read)
