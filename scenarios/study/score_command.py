"""Score a policy on the frozen benchmark of sites that come and go, version 1.

The score is the share of a clairvoyant's tokens, in percent. Sites are seen where they are held or
asked for; policies may be trained on any worlds but those of the splits that are judged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from des.base.command import EXIT_CODES
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from scenarios.study import spot_scores

PROG = "python -m scenarios.score"
_JUDGED = ("validation", "test", "short_stays")
_EPILOG = f"""\
A function takes observations of `EastWest/Spot-v0`, one row for each of N jobs that decide
together, and returns the number of an offer for each, (N,).

examples:
  {PROG}
      scores of the rules, as recorded
  {PROG} runs/spot/spot-0.safetensors
      a policy of `eastwest train spot --partial`
  {PROG} my_policies:choose --splits test
      a function of your own, in a module that Python finds
  {PROG} --recompute --splits validation
      the rules scored again

exit codes: 0 done; 1 a rule scored again is off its record; 2 bad input; {EXIT_CODES}
"""
_OFF_PERCENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the scoring."""

    policy: str = option(
        "", "checkpoint, or MODULE:FUNCTION", is_positional=True, default_text="the rules alone"
    )
    splits: tuple[str, ...] = option(_JUDGED, "splits to judge on: these and train")
    recompute: bool = option(False, "score the rules again")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> int:
    """Run the command on its settings."""
    frozen = spot_scores.benchmark()
    for name in config.splits:
        frozen.split(name)
    recorded = {
        name: {split: rule.on(split) for split in config.splits}
        for name, rule in frozen.baselines.items()
    }
    scores = dict(recorded)
    if config.policy:
        choose = spot_scores.policy_of_name(config.policy)
        scores[config.policy] = {
            name: spot_scores.score(choose, frozen.split(name)) for name in config.splits
        }
    if config.recompute:
        scores |= {name: _again(frozen, name, config.splits) for name in recorded}
    width = max(map(len, scores))
    sys.stdout.write(f"{frozen.format}: percent of a clairvoyant's tokens\n")
    sys.stdout.write(f"{'':{width}}" + "".join(f"{name:>18}" for name in config.splits) + "\n")
    for name, own in scores.items():
        shown = "".join(f"{f'{mean:.2f} ± {half:.2f}':>18}" for mean, half in own.values())
        sys.stdout.write(f"{name:{width}}{shown}\n")
    DOCUMENT.add(benchmark=frozen.format, scores=scores)
    off = [
        abs(scores[name][split][0] - percent[0])
        for name, own in recorded.items()
        for split, percent in own.items()
    ]
    return int(max(off) > _OFF_PERCENT)


def _again(
    frozen: spot_scores.Benchmark, name: str, splits: Sequence[str]
) -> dict[str, spot_scores.Score]:
    """Score a rule on some splits."""
    choose = spot_scores.rule(name, frozen.baselines[name].horizon_h)
    return {split: spot_scores.score(choose, frozen.split(split)) for split in splits}
