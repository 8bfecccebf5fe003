"""A fixed mixed pool in compiled code, with the floats of `des.serving.fleet_engine`."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from des.compiled.kernels.fleet_batches import EngineNumbers, InstanceArrays, RequestArrays
from des.compiled.kernels.fleet_loop import run_fixed_pool
from des.serving.fleet_world import MIXED, Slo, World


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetTimes:
    """Requests (N,) of a run, in order of arrival. [s]"""

    arrival_s: npt.NDArray[np.float64]
    first_token_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    longest_gap_s: npt.NDArray[np.float64]
    num_restarts: npt.NDArray[np.int64]

    def attainment(self, slo: Slo) -> float:
        """Share of requests within the SLO."""
        in_time = self.first_token_s - self.arrival_s <= slo.ttft_s
        good = in_time & (self.longest_gap_s <= slo.gap_s)
        return float(good.mean())


def simulate_fixed_pool(world: World) -> FleetTimes:
    """Simulate a mixed pool that keeps its initial instances, until every request is finished.

    Raises
    ------
    ValueError
        If the world has two pools, or ends at a time.
    """
    if tuple(world.initial) != (MIXED,) or world.horizon_s is not None:
        raise ValueError(
            f"fixed pool: world must have one pool, mixed, and no horizon_s, got "
            f"{list(world.initial)} and {world.horizon_s}"
        )
    requests = _request_arrays(world)
    run_fixed_pool(_engine_numbers(world), requests, _instance_arrays(world))
    return FleetTimes(
        arrival_s=requests.arrival_s,
        first_token_s=requests.first_token_s,
        end_s=requests.end_s,
        longest_gap_s=requests.longest_gap_s,
        num_restarts=requests.restarts,
    )


def _engine_numbers(world: World) -> EngineNumbers:
    engine = world.engine
    times = {name: float(value) for name, value in dataclasses.asdict(engine.times).items()}
    return EngineNumbers(
        **times,
        kv_capacity_tokens=engine.kv_capacity_tokens,
        max_batch_size=engine.max_batch_size,
        chunk_tokens=engine.chunk_tokens,
    )


def _request_arrays(world: World) -> RequestArrays:
    num = len(world.requests)
    prompt = np.array([one.prompt_tokens for one in world.requests], np.int64)
    return RequestArrays(
        arrival_s=np.array([one.arrival_s for one in world.requests]),
        prompt=prompt,
        output=np.array([one.output_tokens for one in world.requests], np.int64),
        to_read=prompt.copy(),
        held=prompt.copy(),
        written=np.zeros(num, np.int64),
        restarts=np.zeros(num, np.int64),
        follower=np.full(num, -1, np.int64),
        first_token_s=np.full(num, np.nan),
        end_s=np.full(num, np.nan),
        last_token_s=np.full(num, -1.0),
        longest_gap_s=np.zeros(num),
    )


def _instance_arrays(world: World) -> InstanceArrays:
    num, batch = world.initial[MIXED], world.engine.max_batch_size

    def zeros() -> npt.NDArray[np.int64]:
        return np.zeros(num, np.int64)

    return InstanceArrays(
        first_waiting=zeros(),
        last_waiting=zeros(),
        num_waiting=zeros(),
        first_reading=zeros(),
        last_reading=zeros(),
        num_reading=zeros(),
        writing=np.zeros((num, batch), np.int64),
        num_writing=zeros(),
        pieces=np.zeros((num, batch), np.int64),
        num_pieces=zeros(),
        used=zeros(),
        context=zeros(),
        run_num=zeros(),
        run_start_s=np.zeros(num),
        run_end_s=np.full(num, np.inf),
    )
