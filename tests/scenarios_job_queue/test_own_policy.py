"""The policy of one's own that the documentation shows, and its place among others."""

import re
from pathlib import Path

from queues import finishes, queued, ran

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"


def test_the_policy_in_the_page_runs_and_is_short():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    names: dict[str, object] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    jobs = queued((0, 4, 40), (1, 4, 30), (1, 1, 50), (1, 1, 50))

    assert len(block.splitlines()) < 40
    assert len(names["history"].jobs) == 21
    assert finishes(ran(jobs, names["policy"])) == {0: 40, 2: 90, 3: 90, 1: 120}
