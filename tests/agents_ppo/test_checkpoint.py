"""Checkpoint files and the networks in them: same content same bytes, damage noticed."""

import contextlib
import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agents.ppo.checkpoint import CheckpointError, load_checkpoint, pack_content, save_checkpoint
from agents.ppo.distributions import ordinal_z
from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.trained_policy import TrainedPolicy, network_payload

PAYLOAD = {
    "step": 3,
    "share": 0.25,
    "names": ["east", "west"],
    "sizes": (3, 81),
    "random": {"state": 2**120 + 1, "cached": None, "ready": True},
    "weights": torch.arange(6.0).view(2, 3),
}


def network(seed: int = 0) -> ActorCritic:
    architecture = NetworkArchitecture(
        observation_size=4, action_sizes=(3, 2, 81), ordinal_starts=(None, None, 0.5)
    )
    return ActorCritic(architecture, torch.Generator().manual_seed(seed))


def without_tensors(payload: dict[str, object]) -> dict[str, object]:
    return {name: part for name, part in payload.items() if name != "weights"}


def test_payload_comes_back_as_it_was_saved(tmp_path: Path):
    path = tmp_path / "run.safetensors"
    save_checkpoint(path, PAYLOAD)

    loaded = load_checkpoint(path)

    assert list(loaded) == list(PAYLOAD)
    assert without_tensors(loaded) == without_tensors(PAYLOAD)
    assert np.array_equal(loaded["weights"], PAYLOAD["weights"])


def test_equal_payloads_give_equal_bytes_whatever_the_objects_share(tmp_path: Path):
    name, weights = "".join(["ea", "st"]), torch.ones(3)
    shared = {"names": [name, name], "tensors": [weights, weights]}
    apart = {
        "names": ["".join(["ea", "st"]), "".join(["eas", "t"])],
        "tensors": [torch.ones(3), torch.ones(2, 3).T[:, 0]],
    }
    for file, payload in (("one.safetensors", shared), ("a longer name.safetensors", apart)):
        save_checkpoint(tmp_path / file, payload)
    save_checkpoint(tmp_path / "again.safetensors", load_checkpoint(tmp_path / "one.safetensors"))

    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_another_process_writes_the_same_bytes(tmp_path: Path):
    program = (
        "import sys, pathlib, test_checkpoint as t; "
        "t.save_checkpoint(pathlib.Path(sys.argv[1]), t.network_payload(t.network()))"
    )
    save_checkpoint(tmp_path / "here.safetensors", network_payload(network()))

    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "there.safetensors")],
        check=True,
        cwd=Path(__file__).parent,
    )

    assert (tmp_path / "here.safetensors").read_bytes() == (
        tmp_path / "there.safetensors"
    ).read_bytes()


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("intact") / "run.safetensors"
    save_checkpoint(path, PAYLOAD)
    return path


@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_flipped_bit_is_noticed_or_has_no_effect(intact, position, bit):
    packed = bytearray(intact.read_bytes())
    packed[int(position * len(packed))] ^= 1 << bit
    damaged = intact.with_name("damaged.safetensors")
    damaged.write_bytes(packed)

    loaded = PAYLOAD
    with contextlib.suppress(CheckpointError):
        loaded = load_checkpoint(damaged)
    assert without_tensors(loaded) == without_tensors(PAYLOAD)
    assert np.array_equal(loaded["weights"], PAYLOAD["weights"])


@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_file_is_refused(intact, share):
    packed = intact.read_bytes()
    damaged = intact.with_name("truncated.safetensors")
    damaged.write_bytes(packed[: int(share * len(packed))])

    with pytest.raises(
        CheckpointError, match=r"truncated\.safetensors: must be an intact eastwest-checkpoint"
    ):
        load_checkpoint(damaged)


@pytest.mark.parametrize(
    ("metadata", "payload", "complaint"),
    [
        ({"format": "another"}, {}, "got another safetensors file"),
        ({"format": "eastwest-checkpoint", "version": "2"}, {}, "version 3, got version '2'"),
        ({"format": "eastwest-checkpoint", "version": "3"}, [], "payload must be a dict"),
    ],
    ids=["foreign", "older", "no payload"],
)
def test_other_safetensors_files_are_refused_by_name(tmp_path: Path, metadata, payload, complaint):
    path = tmp_path / "other.safetensors"
    path.write_bytes(pack_content(payload, metadata))

    with pytest.raises(CheckpointError, match=f"other.safetensors: .*{complaint}"):
        load_checkpoint(path)


def test_files_of_torch_are_refused_without_being_read(tmp_path: Path):
    torch.save({"weights": torch.ones(2)}, tmp_path / "old.pt")

    with pytest.raises(CheckpointError, match=r"old\.pt: .*version 3, got one of torch, as before"):
        load_checkpoint(tmp_path / "old.pt")


def test_missing_and_empty_files_and_folders_are_refused_with_their_cause(tmp_path: Path):
    (tmp_path / "empty.safetensors").touch()
    (tmp_path / "text.safetensors").write_text("step,reward\n1,2\n")

    with pytest.raises(CheckpointError, match=r"missing\.safetensors: .*No such file") as caught:
        load_checkpoint(tmp_path / "missing.safetensors")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(CheckpointError, match=r"empty\.safetensors: .*got 0 bytes"):
        load_checkpoint(tmp_path / "empty.safetensors")
    with pytest.raises(CheckpointError, match=r"text\.safetensors: .*of something else"):
        load_checkpoint(tmp_path / "text.safetensors")
    with pytest.raises(CheckpointError, match="Is a directory"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("foreign", [np.float64(1), {1, 2}, np.array(["text"]), b"raw"])
def test_failed_save_leaves_the_old_file_alone(tmp_path: Path, foreign):
    path = tmp_path / "run.safetensors"
    save_checkpoint(path, PAYLOAD)
    before = path.read_bytes()

    with pytest.raises(
        ValueError, match=rf"payload\['deep'\]\[1\] must be .*{type(foreign).__name__}"
    ):
        save_checkpoint(path, {"deep": [0, foreign]})

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_save_that_cannot_replace_leaves_no_temporary_file(tmp_path: Path):
    taken = tmp_path / "run.safetensors"
    taken.mkdir()

    with pytest.raises(IsADirectoryError):
        save_checkpoint(taken, PAYLOAD)

    assert list(tmp_path.iterdir()) == [taken]


def test_trained_policy_decides_as_the_network_it_was_saved_from(tmp_path: Path):
    path = tmp_path / "run.safetensors"
    original = network()
    generator = torch.Generator().manual_seed(1)
    observations = torch.rand(50, 4, generator=generator)
    original.normaliser.merge(ObservationMoments.of(observations))
    with torch.no_grad():
        for parameter in original.parameters():  # so that decisions differ
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    save_checkpoint(path, {"policy": network_payload(original)})

    policy = TrainedPolicy.from_payload(
        load_checkpoint(path), source=path, observation_size=4, action_sizes=(3, 2, 81)
    )

    decisions = [policy.decide(observation.numpy()) for observation in observations]
    np.testing.assert_array_equal(decisions, original.greedy(observations).numpy())
    assert len({tuple(decision) for decision in decisions}) > 10
    with pytest.raises(ValueError, match="policy: observation must be finite"):
        policy.decide(np.full(4, np.nan, dtype=np.float32))


def test_policy_for_another_environment_is_refused_naming_both():
    payload = {"policy": network_payload(network())}

    with pytest.raises(CheckpointError, match=r"\(3, 2, 9\), got .*\(3, 2, 81\)"):
        TrainedPolicy.from_payload(
            payload, source=Path("run.safetensors"), observation_size=4, action_sizes=(3, 2, 9)
        )
    with pytest.raises(CheckpointError, match=r"observation_size 5 .*got observation_size 4"):
        TrainedPolicy.from_payload(
            payload, source=Path("run.safetensors"), observation_size=5, action_sizes=(3, 2, 81)
        )


@pytest.mark.parametrize(
    "policy",
    [
        None,
        {},
        {**network_payload(network()), "hidden_sizes": (64, 32)},
        {**network_payload(network()), "parameters": {}},
        {**network_payload(network()), "extra": 1},
    ],
    ids=["absent", "empty", "other sizes", "no parameters", "unknown entry"],
)
def test_incomplete_policy_is_refused_naming_the_file(policy):
    with pytest.raises(CheckpointError, match=r"checkpoint run\.safetensors: policy must"):
        TrainedPolicy.from_payload(
            {"policy": policy},
            source=Path("run.safetensors"),
            observation_size=4,
            action_sizes=(3, 2, 81),
        )


@given(share=st.floats(0, 1), num_choices=st.integers(2, 100))
def test_first_policy_is_around_its_start_whatever_it_sees(share, num_choices):
    architecture = NetworkArchitecture(
        observation_size=2, action_sizes=(4, num_choices), ordinal_starts=(None, share)
    )
    network = ActorCritic(architecture, torch.Generator().manual_seed(0))
    network.normaliser.merge(ObservationMoments.of(torch.tensor([[0.0, 0.1], [1.0, 0.3]])))

    choices = network.greedy(torch.rand(20, 2, generator=torch.Generator().manual_seed(1)))[:, 1]

    assert (choices - share * (num_choices - 1)).abs().max() <= 0.5 + 0.02 * num_choices
    assert ordinal_z(share) == pytest.approx(-ordinal_z(1 - share))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("observation_size", 0),
        ("action_sizes", ()),
        ("action_sizes", (0, 3)),
        ("ordinal_starts", (0.5,)),
        ("hidden_sizes", (0,)),
    ],
)
def test_architecture_names_the_field_that_is_out_of_range(field, value):
    sound = NetworkArchitecture(observation_size=1, action_sizes=(2, 3), ordinal_starts=(None, 0.5))

    with pytest.raises(ValueError, match=f"architecture: {field} must be .*, got "):
        dataclasses.replace(sound, **{field: value})
