"""Kernels of the trained policies, compiled by a decision of the policies alone.

`agents.decide` runs this as a second process while it compiles the kernels of the search.
"""

import sys

from agents.answer.answering import policy_plan
from agents.answer.config import Config
from agents.answer.inside_domains import bind_inside
from agents.answer.reading import question_of
from agents.answer.trained import Trained
from des.base.jit import COMPILING_LINES
from des.base.parent_process import be_killed_with

NETWORK = "east_central_west"


def main() -> None:
    """Decide on a shipped network by the shipped policies."""
    config = Config(network=NETWORK, trainer="ideal")
    question, trained = question_of(config), Trained(config)
    assert trained.across is not None
    judged = policy_plan(question, trained.across)
    assert judged is not None
    assert trained.local is not None
    bind_inside(question, judged, trained.local)


if __name__ == "__main__":
    be_killed_with(int(sys.argv[1]))
    COMPILING_LINES.continue_another()
    main()
