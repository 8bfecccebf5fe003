"""Small clusters and queues of jobs."""

from agents.cluster.admission import AcceptAll
from agents.cluster.key_orderings import Fifo
from agents.cluster.placing import FirstFree
from des.cluster.node_set import NodeSet
from des.cluster.policy import Policy
from des.cluster.queued_job import QueuedJob
from des.cluster.running import run
from des.cluster.world import World
from des.plan.replacement import Replacement

FREE = Replacement(restart_s=0.0)


def queued(*rows, **common):
    """Jobs of (arrival, GPUs, service), numbered from 0."""
    return tuple(
        QueuedJob(job_id=number, arrival_s=arrival_s, num_gpus=gpus, service_s=service_s, **common)
        for number, (arrival_s, gpus, service_s) in enumerate(rows)
    )


def policy(ordering=None, **parts):
    """A policy: FIFO, first free and accept all where nothing else is named."""
    parts = {"admission": AcceptAll(), "placing": FirstFree()} | parts
    return Policy(ordering=ordering or Fifo(), **parts)


def ran(jobs, parts=None, *, nodes=1, gpus=4, seed=0, **world):
    """History of jobs on equal nodes, restarts free unless a replacement is given."""
    nodes = NodeSet.equal(nodes, gpus) if isinstance(nodes, int) else nodes
    world = {"replacement": FREE} | world
    return run(World(jobs=jobs, nodes=nodes, **world), parts or policy(), seed)


def finishes(history):
    """Times of the ends by job. [s]"""
    return {job.job_id: job.finish_s for job in history.jobs}
