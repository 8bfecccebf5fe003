"""The task of autoscaling: its actions, observations and rewards, and a batch of its days."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from agents.ppo.batch_step import ReplayedBatch, TaskStep
from agents.serving.forecast_policies import Predictive
from agents.serving.rl_state import RLActionExecutor, RLRewardCalculator, RLStateCollector
from des.compiled.fleet import CompiledFleet
from des.serving.engines import engine_named
from des.serving.fleet_scaling import ScaledFleet
from des.serving.fleet_settings import ScalingLimits, Slo, StartDelay
from des.serving.fleet_world import History, ScalingPolicy, View, World
from des.serving.request_streams import TokenLengths, modulated_requests
from des.serving.requests import Request

DAY_S = 1200.0
"""Length of a drawn day, which is compressed."""
DECISION_S = 10.0
"""Time from one decision to the next."""
ENGINES = ("h100-llama-3.3-70b-fp8-tp4", "h100-llama-3.3-70b-fp8-tp8")
"""Engines of the days to train on; the first one is that of the task."""


def draw_day(seed: int, *, drains_soonest: bool = False) -> World:
    """Draw a world: a quiet, a usual and a busy rate that take turns, on pools of two instances.

    Rates are 1 to 2, 4 to 7 and 10 to 16 requests a second, with prompts of 4,000 tokens and
    answers of 250 on average; stays last 2 min on average. With ``drains_soonest`` instances are
    drained by the time that they are expected to take.
    """
    rng = np.random.default_rng([seed, 26])
    rates = (float(rng.uniform(1, 2)), float(rng.uniform(4, 7)), float(rng.uniform(10, 16)))
    lengths = TokenLengths(prompt_mean=4000.0, output_mean=250.0, variation=0.6, max_tokens=16_000)
    requests = modulated_requests(rates, 120.0, DAY_S, int(rng.integers(2**31)), lengths)
    return day_world(requests, drains_soonest=drains_soonest)


def training_day(seed: int, *, drains_soonest: bool = False) -> World:
    """Draw a day to train on: `draw_day` for even seeds, one of a wider family for odd ones.

    Of the wider family are drawn: the engine (4 or 8 H100), the SLO of the first token (0.5 to
    2 s), means of prompts (1,000 to 4,000 tokens) and answers (30 to 300), the busy rate (prompts
    that keep 0.3 to 3 instances reading) and the mean stay (20 to 120 s). Ratios are drawn by their
    logarithms.
    """
    if seed % 2 == 0:
        return draw_day(seed, drains_soonest=drains_soonest)
    rng = np.random.default_rng([seed, 27])

    def drawn(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    name = ENGINES[int(rng.integers(len(ENGINES)))]
    prompt_mean, output_mean = drawn(1000.0, 4000.0), drawn(30.0, 300.0)
    read_s = engine_named(name).times.per_prompt_token_s * prompt_mean
    busy = drawn(0.3, 3.0) / read_s
    rates = (busy * float(rng.uniform(0.05, 0.2)), busy * float(rng.uniform(0.3, 0.5)), busy)
    lengths = TokenLengths(
        prompt_mean=prompt_mean,
        output_mean=output_mean,
        variation=float(rng.uniform(0.4, 1.0)),
        max_tokens=16_000,
    )
    stay_s, drawn_seed = drawn(20.0, 120.0), int(rng.integers(2**31))
    return day_world(
        modulated_requests(rates, stay_s, DAY_S, drawn_seed, lengths),
        drains_soonest=drains_soonest,
        engine=name,
        ttft_s=drawn(0.5, 2.0),
    )


def day_world(
    requests: Sequence[Request],
    *,
    drains_soonest: bool = False,
    engine: str = ENGINES[0],
    ttft_s: float = 2.0,
    horizon_s: float = DAY_S,
) -> World:
    """Put requests on a fleet of the task, by default Llama 3.3 70B on 4 H100: 2 + 2 instances."""
    return World(
        requests=tuple(requests),
        engine=engine_named(engine, usd_per_gpu_h=2.5),
        initial={"prompt": 2, "token": 2},
        slo=Slo(ttft_s=ttft_s, gap_s=0.1),
        start=StartDelay(load_s=30.0),
        limits=ScalingLimits(max_total=40, drains_soonest=drains_soonest),
        decision_interval_s=DECISION_S,
        horizon_s=horizon_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDays:
    """Days cut out of a trace: of `DAY_S`, or of a quarter of the trace if that is less.

    A seed draws the request with which its day begins: from the last quarter of the trace where
    ``is_unseen``, so that no such day is part of one to train on.

    Raises
    ------
    ValueError
        If a quarter of the trace is shorter than three decisions.
    """

    requests: tuple[Request, ...]
    drains_soonest: bool = False
    is_unseen: bool = False

    def __post_init__(self) -> None:
        if not self.requests or self.day_s < 3 * DECISION_S:
            span_s = 0.0 if not self.requests else 4 * self.day_s
            raise ValueError(
                f"days of a trace: requests must span at least {12 * DECISION_S:g} s, got "
                f"{len(self.requests)} over {span_s:g} s"
            )

    @property
    def day_s(self) -> float:
        """Length of a day. [s]"""
        return min(DAY_S, (self.requests[-1].arrival_s - self.requests[0].arrival_s) / 4.0)

    def __call__(self, seed: int) -> World:
        """Cut out the day of a seed."""
        times_s = np.array([one.arrival_s for one in self.requests])
        held_s = times_s[0] + 3 * (times_s[-1] - times_s[0]) / 4.0
        low_s, high_s = (held_s, times_s[-1]) if self.is_unseen else (times_s[0], held_s)
        starts = np.flatnonzero((times_s >= low_s) & (times_s <= high_s - self.day_s))
        first = np.searchsorted(times_s, low_s)  # of a short trace the last quarter is one day long
        if len(starts):
            first = np.random.default_rng([seed, 28]).choice(starts)
        begin_s = times_s[first]
        after = np.searchsorted(times_s, begin_s + self.day_s)
        day = [
            replace(one, arrival_s=one.arrival_s - begin_s) for one in self.requests[first:after]
        ]
        return day_world(day, drains_soonest=self.drains_soonest, horizon_s=self.day_s)


_LOGGED_STEPS = 100
"""Steps between lines of a fleet's log with the reward and the number of active instances."""


@dataclass(slots=True, kw_only=True)
class TraceRLSimulator:
    """Episodes of a fleet on drawn or given worlds, stepped by actions in [-1, 1]^3.

    ``make_world`` gives the world of a seed (default: `draw_day`).
    """

    make_world: Callable[[int], World] = draw_day
    collector: RLStateCollector = field(default_factory=RLStateCollector)
    executor: RLActionExecutor = field(default_factory=RLActionExecutor)
    calculator: RLRewardCalculator = field(default_factory=RLRewardCalculator)
    make_fleet: Callable[[World, int], ScaledFleet] = CompiledFleet
    """Engine; that of SimPy, `des.serving.fleet_engine.Fleet`, has the same floats."""
    guide: ScalingPolicy = field(default_factory=Predictive)
    """Rule whose counts are observed, and changed by residual actions."""
    fleet: ScaledFleet | None = None
    view: View | None = None
    memory: object = None
    wanted: Mapping[str, int] = field(default_factory=dict)

    def reset(self, seed: int) -> npt.NDArray[np.float32]:
        """Begin the episode of a seed and return its first observation (D,).

        Raises
        ------
        ValueError
            If its requests end before the first decision.
        """
        self.fleet = self.make_fleet(self.make_world(seed), seed)
        self.memory = self.guide.first_memory(self.fleet.world)
        self.view = self.fleet.next_view()
        if self.view is None:
            raise ValueError(f"episode {seed}: requests must go on to the first decision")
        return self._observe(self.view)

    def run(
        self, act: Callable[[npt.NDArray[np.float32]], npt.ArrayLike], seed: int = 0
    ) -> History:
        """Run the episode of a seed by actions for observations (D,), see `reset` and `step`."""
        observation, is_over = self.reset(seed), False
        while not is_over:
            observation, _, is_over = self.step(act(observation))
        assert self.fleet is not None
        return self.fleet.history()

    def _observe(self, view: View) -> npt.NDArray[np.float32]:
        """Observe the fleet and the counts that the guide wants."""
        advice, self.memory = self.guide.decide(view, self.memory)
        self.wanted = advice.counts
        return self.collector.collect(view, self.wanted)

    def step(self, action: npt.ArrayLike) -> tuple[npt.NDArray[np.float32], float, bool]:
        """Act; return observation (D,), reward, and whether the episode is over.

        At its end the observation is the one before.

        Raises
        ------
        ValueError
            If the action is not three numbers within [-1, 1], or no episode is under way.
        """
        if self.fleet is None or self.view is None:
            raise ValueError("simulator: reset must be called first")
        decision = self.executor.decide(self.view, action, self.wanted)
        self.fleet.apply(self.view, decision)
        view = None if self.fleet.is_over() else self.fleet.next_view()
        if view is None:
            observation = self.collector.collect(self.view, self.wanted)
            self.view = None
            return observation, 0.0, True
        self.view, reward = view, self.calculator.reward(view, decision)
        if len(self.fleet.decisions) % _LOGGED_STEPS == 0:
            active = sum(pool.active for pool in view.pools.values())
            self.fleet.manager.say(
                f"[Step {len(self.fleet.decisions)}] reward {reward:.4f}, active instances {active}"
            )
        return self._observe(view), reward, False

    @property
    def first_choices(self) -> tuple[int, ...]:
        """Choices that change nothing."""
        return tuple(size // 2 for size in self.executor.sizes)


class AutoscaleBatch(ReplayedBatch[TraceRLSimulator]):
    """N simulators; environment ``i`` goes through the days of ``seed`` and ``i``.

    Actions are the numbers of changes that `RLActionExecutor.sizes` counts.
    """

    has_time_limit = True

    def __init__(
        self,
        num_envs: int,
        seed: int,
        make_world: Callable[[int], World] = draw_day,
        executor: RLActionExecutor | None = None,
    ) -> None:
        executor = executor or RLActionExecutor()
        super().__init__(
            "autoscaling",
            num_envs,
            seed,
            lambda: TraceRLSimulator(make_world=make_world, executor=executor),
        )
        self.observation_size, self.action_sizes = self.tasks[0].collector.size, executor.sizes
        self.ordinal_starts = (0.5, 0.5, 0.5)  # no change

    def play(self, task: TraceRLSimulator, choices: list[int]) -> TaskStep:
        """Apply the choices of one action, as changes of the pools."""
        return task.step(task.executor.action_of(np.array(choices)))
