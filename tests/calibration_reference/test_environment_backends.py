"""``EastWest/Placement-v0`` judged by ASTRA-sim: our engine, programs in its place, and ns-3's."""

import dataclasses
import pickle
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from reference_programs import fake_program, fake_programs, small_case
from stable_baselines3.common.env_checker import check_env as check_env_sb3
from strategies import world

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import PlacementEnv, make_task
from agents.flat.episode import Episode
from agents.flat.sb3_vec_env import PlacementSB3VecEnv
from calibration.cases.case import Measurement, PlacementCase
from calibration.reference.astra_sim import measure_case
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.environment import BINARIES_VARIABLE, NS3_PROGRAM
from des import Dynamics, Placement, Plan, Topology, Transport
from des.base.random_numbers import derived_seed

ID = "EastWest/Placement-v0"
BACKENDS = ("astra-unaware", "astra-aware", "astra-pairwise")
LAW = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
STILL = small_case("overlapped").topology
"""Equal links; a message takes 0.25 s on the wire and 0.05 s more."""
ONE_SLOT = small_case("one_in_flight").topology
JOB = small_case(num_microbatches=2).workload
"""Three layers of 1 s there and 2 s back."""
FIRST, *OTHERS = STILL.links
MOVING = dataclasses.replace(
    STILL,
    links=(dataclasses.replace(FIRST, bandwidth_bytes_per_s=2.0**28), *OTHERS),
    dynamics=LAW,
)
"""One link of a quarter of the bandwidth, and all of them move from epoch to epoch."""
SPREAD, PAIRED = np.array([0, 1, 2]), np.array([1, 1, 2])


@pytest.fixture(autouse=True)
def _our_engine(monkeypatch):
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)


def arguments(**changes: object) -> dict[str, object]:
    return {"topology": MOVING, "workload": JOB, "epochs_per_episode": 3, **changes}


def make(backend: str, **changes: object) -> PlacementEnv:
    return PlacementEnv(**arguments(backend=backend, **changes))


def measured(topology: Topology, backend: str, *domains: int, **options: object) -> Measurement:
    """Ask the adapter itself."""
    plan = Plan(placement=Placement(domain_of_layer=domains), schedule="1f1b")
    case = PlacementCase(topology=topology, workload=JOB, plan=plan)
    return measure_case(case, backend.removeprefix("astra-"), **options)


# What Gymnasium and Stable-Baselines3 demand; warnings are errors.


@pytest.mark.parametrize("actions", ["per_layer", "order_split"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_both_checkers_are_content(backend, actions):
    env = gymnasium.make(ID, **arguments(backend=backend, actions=actions))

    check_env(env.unwrapped, skip_render_check=True)
    check_env_sb3(env.unwrapped, skip_render_check=True)


# Figures.


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_microbatch_by_hand(backend):
    """9 s of passes and four messages of 0.3 s; nothing queues, and all links are equal.

    The first domain finishes after 10.2 s, of which it computes 3; the second one has delivered
    its gradient 2 s before that and the third one 4.3 s before it.
    """
    one = dataclasses.replace(JOB, num_microbatches=1)
    env = make(backend, topology=STILL, workload=one)
    _, at_reset = env.reset(seed=0)
    _, reward, *_, info = env.step(SPREAD)

    assert info["iteration_time_s"] == pytest.approx(10.2, abs=1e-7)
    assert info["communication_cost_cycles"] == pytest.approx((7.2 + 5.2 + 2.9) * 1e9, abs=100)
    assert info["utilisation"] == pytest.approx(9 / (3 * 10.2))
    assert info["bubble_fraction"] == pytest.approx(1 - 9 / (3 * 10.2))
    assert reward == pytest.approx(0.3 * 9 / (3 * 10.2) - 0.3)  # as long and as much as the base
    assert at_reset == {
        "baseline_iteration_time_s": info["iteration_time_s"],
        "baseline_communication_cost_cycles": info["communication_cost_cycles"],
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_rewards_come_from_what_is_measured_on_the_links_of_the_epoch(backend):
    """The base is the even split on the base links, in cycles of the same backend."""
    env = make(backend)
    env.reset(seed=3)
    episode = Episode(env.task)
    episode.begin(int(np.random.default_rng(3).integers(2**63)))
    base = measured(MOVING, backend, 0, 1, 2)
    base_cycles = sum(base.exposed_s) * 1e9

    times_s = []
    for _ in range(3):
        now = measured(episode.topology, backend, 1, 1, 2)
        episode.step(Placement(domain_of_layer=(1, 1, 2)))
        _, reward, *_, info = env.step(PAIRED)
        cycles = sum(now.exposed_s) * 1e9
        times_s.append(now.makespan_s)
        assert info["iteration_time_s"] == now.makespan_s
        assert info["communication_cost_cycles"] == pytest.approx(cycles, rel=1e-12)
        assert info["baseline_iteration_time_s"] == base.makespan_s
        assert info["baseline_communication_cost_cycles"] == pytest.approx(base_cycles, rel=1e-12)
        assert reward == pytest.approx(
            0.4 * (base.makespan_s - now.makespan_s) / base.makespan_s
            + 0.3 * 18 / (3 * now.makespan_s)
            - 0.3 * cycles / base_cycles
        )
    assert len(set(times_s)) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_ever_counted_in_bytes(backend):
    env = make(backend)
    _, at_reset = env.reset(seed=0)
    info = env.step(SPREAD)[4]

    assert "communication_cost_cycles" in info
    assert not [name for name in (*info, *at_reset) if name.endswith("cost_bytes")]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_single_domain_waits_for_nobody(backend):
    env = make(backend)
    env.reset(seed=0)
    info = env.step(np.zeros(3, dtype=np.int64))[4]

    assert info["iteration_time_s"] == pytest.approx(18.0, abs=1e-7)
    assert info["communication_cost_cycles"] == 0.0
    assert info["num_stages"] == 1


@pytest.mark.parametrize("aggregation", ["min", "mean", "max", "harmonic"])
@pytest.mark.parametrize("backend", ["astra-unaware", "astra-aware"])
def test_links_become_one_in_the_way_that_is_asked_for(backend, aggregation):
    env = make(backend, backend_options={"network_aggregation": aggregation})
    _, at_reset = env.reset(seed=0)

    expected = measured(MOVING, backend, 0, 1, 2, aggregation=aggregation)
    assert at_reset["baseline_iteration_time_s"] == expected.makespan_s


def test_aggregations_differ_where_links_do_and_harmonic_is_the_default():
    times_s = {}
    for aggregation in ("min", "max", "harmonic", None):
        options = {"network_aggregation": aggregation} if aggregation else None
        at_reset = make("astra-aware", backend_options=options).reset(seed=0)[1]
        times_s[aggregation] = at_reset["baseline_iteration_time_s"]

    assert times_s["min"] > times_s["harmonic"] > times_s["max"]
    assert times_s[None] == times_s["harmonic"]


def test_pairwise_agrees_with_des_on_every_placement():
    """Both follow the same links of their own figures; cycles are whole nanoseconds."""
    ours, theirs = make("des"), make("astra-pairwise")
    for env in (ours, theirs):
        env.reset(seed=5)
    for action in (SPREAD, PAIRED, np.array([2, 0, 2])):
        one, other = ours.step(action)[4], theirs.step(action)[4]
        assert other["iteration_time_s"] == pytest.approx(one["iteration_time_s"], rel=1e-7)
        for name in ("utilisation", "bubble_fraction", "tokens_per_s"):
            assert other[name] == pytest.approx(one[name], rel=1e-6)
        for name in ("num_stages", "fits_memory", "memory_overflow_fraction"):
            assert other[name] == one[name]


# Randomness, batches.


def play(env: PlacementEnv, seed: int) -> list[object]:
    observation, at_reset = env.reset(seed=seed)
    rows: list[object] = [observation.tolist(), at_reset]
    for action in (SPREAD, PAIRED, SPREAD):
        observation, *rest = env.step(action)
        rows += [observation.tolist(), *rest]
    return rows


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_seeds_give_equal_episodes(backend):
    env = make(backend)
    first = play(env, 5)

    assert play(env, 5) == first
    assert play(make(backend), 5) == first
    assert play(env, 6) != first


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_is_its_episodes_for_any_number_of_workers(backend):
    given = make_task(**arguments(backend=backend))
    actions = np.array([[SPREAD, PAIRED], [PAIRED, [0, 0, 1]]])
    batches = []
    for num_workers in (1, 2):
        with BatchedPlacementEnv(given, num_envs=2, seed=9, num_workers=num_workers) as batch:
            batches.append([batch.reset(), *(batch.step(each) for each in actions)])
    (first, *steps), (again, *same_steps) = batches

    np.testing.assert_array_equal(first, again)
    for step, same in zip(steps, same_steps, strict=True):
        np.testing.assert_equal(dataclasses.asdict(same), dataclasses.asdict(step))
    for position in range(2):
        episode = Episode(given)
        seat_seed = derived_seed(9, position, 0)
        observation = episode.begin(int(derived_seed(seat_seed, 0, 0)))
        np.testing.assert_array_equal(first[position], observation)
        for action, step in zip(actions, steps, strict=True):
            alone = episode.step(given.codec.decode(action[position].tolist()))
            assert step.rewards[position] == np.float32(alone.reward)
            assert alone.metrics == {name: step.metrics[name][position] for name in step.metrics}


@pytest.mark.parametrize("backend", BACKENDS)
def test_make_vec_takes_a_backend(backend):
    env = gymnasium.make_vec(ID, num_envs=2, **arguments(backend=backend))
    env.reset(seed=1)
    infos = env.step(np.stack([SPREAD, PAIRED]))[4]

    assert infos["communication_cost_cycles"].shape == (2,)
    assert (infos["communication_cost_cycles"] > 0).all()
    assert "communication_cost_bytes" not in infos
    env.close()


def test_stable_baselines3_takes_a_task_with_a_backend():
    env = PlacementSB3VecEnv(make_task(**arguments(backend="astra-aware")), num_envs=2, seed=0)
    env.reset()
    env.step(np.stack([SPREAD, PAIRED]))

    assert (env.metrics["communication_cost_cycles"] > 0).all()
    env.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tasks_go_to_other_processes_and_differ_by_their_backends(backend):
    given = make_task(**arguments(backend=backend))
    there = pickle.loads(pickle.dumps(given))

    assert there == given
    assert there.fingerprint() == given.fingerprint()
    others = [make_task(**arguments(backend=name)) for name in ("des", *BACKENDS)]
    assert [other.fingerprint() for other in others].count(given.fingerprint()) == 1


def test_des_by_name_is_the_default_in_compiled_code():
    with (
        BatchedPlacementEnv(make_task(**arguments()), num_envs=2, seed=4) as default,
        BatchedPlacementEnv(make_task(**arguments(backend="des")), num_envs=2, seed=4) as named,
    ):
        np.testing.assert_array_equal(named.reset(), default.reset())
        actions = np.stack([SPREAD, PAIRED])
        one, other = default.step(actions), named.step(actions)
        assert named.bytes_per_env == default.bytes_per_env is not None
        np.testing.assert_equal(dataclasses.asdict(other), dataclasses.asdict(one))


# Programs in the place of our engine.


@pytest.mark.parametrize("backend", BACKENDS)
def test_programs_of_the_variable_give_what_our_engine_does(backend, tmp_path, monkeypatch):
    """Where they can; matrices of links are an extension that only ours has."""
    topology = dataclasses.replace(ONE_SLOT, dynamics=LAW)
    ours = play(make(backend, topology=topology), 2)
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin")))

    env = make(backend, topology=topology)
    assert (env.task.backend.binaries is None) == (backend == "astra-pairwise")
    assert play(env, 2) == ours


@pytest.mark.parametrize("backend", ["astra-unaware", "astra-aware"])
def test_a_missing_program_is_refused_at_construction(backend, tmp_path, monkeypatch):
    monkeypatch.setenv(BINARIES_VARIABLE, str(tmp_path))

    with pytest.raises(ReferenceRunError, match=r"AstraSim_.* must be a program, got no such file"):
        make(backend, topology=ONE_SLOT)


def test_endpoints_that_the_original_does_not_have_are_refused_at_construction(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin")))

    with pytest.raises(ValueError, match=r"original cannot run .* transport\.endpoints is overlap"):
        make("astra-aware", topology=STILL)


@pytest.mark.parametrize("way", ["crash", "partial", "garbage"])
def test_a_program_that_misbehaves_gives_an_error_and_no_number(way, tmp_path, monkeypatch):
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin", way)))
    env = make("astra-aware", topology=ONE_SLOT)

    with pytest.raises(ReferenceRunError, match="attempts gave no result"):
        env.reset(seed=0)


# The packet-level program.


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A user's configuration and physical topology."""
    texts = {"config": "ENABLE_QCN 1\n", "physical_topology": "3 0 3\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    return {name: tmp_path / f"{name}.txt" for name in texts}


def test_ns3_without_a_program_is_refused_at_construction(files, tmp_path, monkeypatch):
    needs = f"backend ns3: needs ASTRA-sim's program {NS3_PROGRAM}"
    with pytest.raises(ReferenceRunError, match=f"{needs}.* got None, None and None"):
        make("ns3", topology=ONE_SLOT)
    with pytest.raises(ReferenceRunError, match=f"{needs}.* got None, .*config.txt"):
        make("ns3", topology=ONE_SLOT, backend_options=files)
    monkeypatch.setenv(BINARIES_VARIABLE, str(tmp_path))
    with pytest.raises(ReferenceRunError, match=f"{NS3_PROGRAM}: must be a program"):
        make("ns3", topology=ONE_SLOT, backend_options=files)


def test_ns3_without_its_files_is_refused_at_construction(files, tmp_path):
    program = fake_program(tmp_path / "own", "ns3")
    missing = files | {"config": tmp_path / "none", "binary": program}

    with pytest.raises(ValueError, match=r"ns3: .*none: cannot be read: No such file"):
        make("ns3", topology=ONE_SLOT, backend_options=missing)


@pytest.mark.parametrize("by_variable", [True, False])
def test_ns3_judges_what_its_program_says(by_variable, files, tmp_path, monkeypatch):
    """Where the analytical network stands in for the packets."""
    program = fake_program(tmp_path / NS3_PROGRAM, "ns3")
    if by_variable:
        monkeypatch.setenv(BINARIES_VARIABLE, str(tmp_path))
    options = files | ({} if by_variable else {"binary": program})
    env = make("ns3", topology=ONE_SLOT, backend_options=options)
    env.reset(seed=0)
    info = env.step(PAIRED)[4]

    assert info["iteration_time_s"] == measured(ONE_SLOT, "unaware", 1, 1, 2).makespan_s
    assert info["communication_cost_cycles"] > 0


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (dataclasses.replace(ONE_SLOT, dynamics=LAW), r"topology\.dynamics must leave the links"),
        (STILL, r"original cannot run .* transport\.endpoints is overlapped"),
        (
            dataclasses.replace(
                STILL, transport=Transport(sharing="none", endpoints="one_in_flight")
            ),
            r"backend ns3: transport\.sharing must be fifo, .* got 'none'",
        ),
    ],
)
def test_ns3_refuses_links_that_its_topology_does_not_have(topology, message, files, tmp_path):
    options = files | {"binary": fake_program(tmp_path / "own", "ns3")}

    with pytest.raises(ValueError, match=message):
        make("ns3", topology=topology, backend_options=options)


# What is refused.


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"topology": dataclasses.replace(STILL, transport=Transport(sharing="fair"))},
            r"transport\.sharing must be fifo or none, got 'fair'",
        ),
        (
            {
                "topology": dataclasses.replace(
                    STILL, dynamics=dataclasses.replace(LAW, update_interval_s=1.0)
                )
            },
            r"topology\.movement must be None, got links that move within the iteration",
        ),
        ({"topology": world("A", {})}, "topology must have at least 2 domains, got 1"),
        ({"render_mode": "rgb_array"}, "render_mode must be None where backend is astra-"),
    ],
    ids=["fair", "moving within", "one domain", "pictures"],
)
def test_what_a_trace_cannot_hold_is_refused_at_construction(backend, changes, message):
    with pytest.raises(ValueError, match=message):
        make(backend, **changes)


def test_a_world_without_queues_is_for_the_backend_without_them():
    """Unaware judges as it does where the world says that messages queue; the others refuse."""
    free = dataclasses.replace(STILL, transport=Transport(sharing="none"))
    env, queued = (make("astra-unaware", topology=topology) for topology in (free, STILL))
    for each in (env, queued):
        each.reset(seed=0)

    assert env.step(PAIRED)[4]["iteration_time_s"] == queued.step(PAIRED)[4]["iteration_time_s"]
    for backend in ("aware", "pairwise"):
        with pytest.raises(
            ValueError, match=rf"backend {backend}: transport\.sharing must be fifo"
        ):
            make(f"astra-{backend}", topology=free)


def test_an_aggregation_that_is_none_is_refused_at_construction():
    with pytest.raises(ValueError, match=r"network_aggregation: must be one of min, .*; got 'sum'"):
        make("astra-aware", backend_options={"network_aggregation": "sum"})
