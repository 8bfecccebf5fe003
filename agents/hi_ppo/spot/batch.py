"""Jobs on sites that come and go stepped together, and one as a Gymnasium environment."""

import gymnasium
import numpy as np

from agents.hi_ppo.spot.task import (
    LEAST_PRIOR,
    MOST_OFFERS,
    OBSERVATION_SIZE,
    MakeSpotWorld,
    SpotTask,
    draw_spot_world,
)
from agents.ppo.batch_step import ReplayedBatch
from agents.ppo.episode_env import EpisodeEnv


class SpotTasks(ReplayedBatch[SpotTask]):
    """N tasks; environment ``i`` goes through the worlds of ``seed`` and ``i``."""

    has_time_limit = True
    observation_size = OBSERVATION_SIZE
    action_sizes = (MOST_OFFERS,)
    ordinal_starts = (None,)

    def __init__(
        self, num_envs: int, seed: int, make_world: MakeSpotWorld = draw_spot_world
    ) -> None:
        super().__init__("spot", num_envs, seed, lambda: SpotTask(make_world=make_world))


class SpotEnv(EpisodeEnv):
    """Hold sites that come and go, deciding every 780 s, ``EastWest/Spot-v0``.

    The action is an offer; observation and reward are those of `agents.hi_ppo.spot`. An episode is
    truncated when its course ends.

    Parameters
    ----------
    make_world
        World of an episode's seed; default: `agents.hi_ppo.spot.task.draw_spot_world`.

    Examples
    --------
    >>> env = gymnasium.make("EastWest/Spot-v0")
    >>> observation, _ = env.reset(seed=0)
    >>> env.observation_space.contains(observation), int(env.action_space.nvec[0])
    (True, 31)
    """

    def __init__(
        self, *, make_world: MakeSpotWorld = draw_spot_world, render_mode: str | None = None
    ) -> None:
        task = SpotTask(make_world=make_world)
        super().__init__(task, episode_name="course", has_time_limit=True, render_mode=render_mode)
        self.observation_space = gymnasium.spaces.Box(
            LEAST_PRIOR, -LEAST_PRIOR, (OBSERVATION_SIZE,), np.float32
        )
        self.action_space = gymnasium.spaces.MultiDiscrete([MOST_OFFERS])
