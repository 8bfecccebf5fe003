"""States of stuck runs, made by hand, and the lines of their diagnosis."""

from dataclasses import replace

from astra_sim.files.execution_trace import NodeType, Trace, TraceNode
from astra_sim.files.network_config import Dimension, NetworkConfig
from astra_sim.files.system_config import Algorithm, SystemConfig
from astra_sim.run.diagnosis import diagnose
from astra_sim.run.waiting import RankState, RunState

CHUNKS = 500_000_000
SEND, RECEIVE, COMPUTE = NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMP


def node(number, kind=COMPUTE, after=(), *, is_cpu=False, **attributes):
    return TraceNode(
        id=number,
        name=f"n{number}",
        type=kind,
        dependencies=tuple(after),
        duration_ns=0,
        is_cpu=is_cpu,
        attributes=attributes,
    )


def receiving(number, source, num_bytes, tag, after=()):
    return node(number, RECEIVE, after, comm_src=source, comm_size=num_bytes, comm_tag=tag)


def state(*nodes, rank=0, in_flight=(), done=(), ready=(), finished=False, errors=None):
    return RankState(
        rank=rank,
        finished=finished,
        trace=Trace(source="by hand", nodes=nodes),
        in_flight={each.id: each for each in nodes if each.id in in_flight},
        done=frozenset(done),
        ready=ready,
        errors=errors or {},
    )


def done(rank):
    """A rank that has finished its only node."""
    return state(node(0), rank=rank, done=[0], finished=True)


def lines(*ranks, sends=(), receives=(), groups=None, dimensions=None):
    counts = dimensions or (max(len(ranks), 2),)
    pattern = Dimension(topology="Ring", num_npus=2, bandwidth_gb_per_s=1.0, latency_ns=1.0)
    rings = (Algorithm(name="ring"),) * len(counts)
    said = diagnose(
        RunState(
            ranks=ranks,
            sends={key: [object()] * number for key, number in dict(sends).items()},
            receives={key: [object()] for key in receives},
            network=NetworkConfig(
                dimensions=tuple(replace(pattern, num_npus=count) for count in counts)
            ),
            system=SystemConfig(all_reduce=rings, all_gather=rings),
            groups=groups or {},
        )
    )
    return list(said)


def causes(*ranks, **more):
    """Lines without the heading."""
    return lines(*ranks, **more)[1:]
