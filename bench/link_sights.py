"""Worth of seeing links: ``python -m bench.link_sights --dynamics markov_slow`` prints a table.

Runs of ``eastwest run --planner search_bound`` whose planner sees links late or only in use, with
figures taken as they were seen last or for what the law of the links lets expect. Iterations a
second against those of full sight by the law, paired over seeds.
"""

import argparse
import math
from collections.abc import Iterator

import numpy as np

from des.dynamics import DYNAMICS
from des.training.training_run import run_training
from scenarios.run.training_run_config import Config
from scenarios.run.training_run_scenario import load_training_run

_SIGHTS: dict[str, dict[str, float | bool | str]] = {
    "full, by the law": {"link_belief": "law"},
    "full": {},
    "20 min late, by the law": {"link_delay_s": 1200.0, "link_belief": "law"},
    "20 min late": {"link_delay_s": 1200.0},
    "in use alone, by the law": {"links_in_use": True, "link_belief": "law"},
    "in use alone": {"links_in_use": True},
}


def rates_per_s(seed: int, dynamics: str, model: str, num_epochs: int) -> Iterator[float]:
    """Iterations a second of a seed under each sight, and under the first plan throughout."""
    first = None
    for sight in _SIGHTS.values():
        config = Config(
            dynamics=dynamics,
            planner="search_bound",
            model=model,
            seed=seed,
            epochs=num_epochs,
            **sight,  # type: ignore[arg-type]
        )
        scenario = load_training_run(config)
        world, settings = (scenario.topology, scenario.workload), scenario.settings
        history = run_training(*world, scenario.planner, settings, scenario.corrections)
        first = first or history.epochs[0].plan
        yield len(history.iterations) / history.total_s
    assert first is not None
    history = run_training(*world, first, settings, scenario.corrections)
    yield len(history.iterations) / history.total_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dynamics", default="markov_slow", choices=list(DYNAMICS))
    parser.add_argument("--model", default="llama2_13b")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=8)
    asked = parser.parse_args()
    rates = np.array(
        [
            list(rates_per_s(seed, asked.dynamics, asked.model, asked.epochs))
            for seed in range(asked.seeds)
        ]
    )
    slower = 100.0 * (rates[:, :1] / rates - 1.0)
    print(f"{asked.dynamics}, {asked.model}: time over full sight by the law, {asked.seeds} seeds")
    for name, own in zip((*_SIGHTS, "first plan throughout"), slower.T, strict=True):
        half = 1.96 * own.std(ddof=1) / math.sqrt(len(own)) if len(own) > 1 else math.nan
        print(f"{name:26} {own.mean():6.2f} +- {half:.2f} %")


if __name__ == "__main__":
    main()
