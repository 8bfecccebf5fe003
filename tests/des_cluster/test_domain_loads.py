"""Loads of domains over a run of a queue."""

import pytest
from queues import queued, ran

from des.cluster.domain_loads import domain_loads
from des.cluster.node_set import NodeSet

TWO = NodeSet.equal(2, 4, num_domains=2)


def test_loads_are_gpus_in_use_and_jobs_that_wait():
    """Job 0 has the first domain until 100, job 1 the second until 60; job 2 waits from 10."""
    jobs = queued((0, 4, 100), (0, 4, 60), (10, 2, 20))
    loads = domain_loads(ran(jobs, nodes=TWO, keeps_stays=True), TWO, share=0.5)
    rows = {
        domain: [(time_s, load.utilisation, load.queue_length) for time_s, load in changes]
        for domain, changes in loads.items()
    }

    assert rows == {
        "d0": [(0, 0.5, 0), (10, 0.5, 1), (60, 0.5, 0), (100, 0, 0)],
        "d1": [(0, 0.5, 0), (10, 0.5, 1), (60, 0.25, 0), (80, 0, 0)],
    }
    assert all(load.memory_occupancy == load.utilisation for _, load in loads["d1"])


def test_a_share_out_of_range_and_a_run_without_stays_are_refused():
    history = ran(queued((0, 4, 100)), nodes=TWO)
    with pytest.raises(ValueError, match=r"share must be within \(0, 1\), got 1"):
        domain_loads(history, TWO, share=1.0)
    with pytest.raises(ValueError, match="must have stays of its jobs"):
        domain_loads(history, TWO)
