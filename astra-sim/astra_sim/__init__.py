"""An engine of our own with ASTRA-sim's files and cycle counts.

Written from a description of ASTRA-sim's behaviour and results of its programs, not its source.
"""

from astra_sim.comm_groups import read_comm_groups
from astra_sim.errors import AstraSimError
from astra_sim.execution_trace import (
    CollectiveType,
    NodeType,
    Trace,
    TraceNode,
    read_trace,
    read_traces,
)
from astra_sim.memory_config import MemoryConfig, read_memory_config
from astra_sim.network_config import (
    BandwidthChange,
    Dimension,
    NetworkConfig,
    PairwiseDimension,
    read_network_config,
)
from astra_sim.result import IncompleteRunError, RankResult, RankStatistics, RunResult
from astra_sim.simulate import Options, simulate
from astra_sim.spans import NodeSpan
from astra_sim.system_config import Algorithm, SharedBusConfig, SystemConfig, read_system_config

__all__ = [
    "Algorithm",
    "AstraSimError",
    "BandwidthChange",
    "CollectiveType",
    "Dimension",
    "IncompleteRunError",
    "MemoryConfig",
    "NetworkConfig",
    "NodeSpan",
    "NodeType",
    "Options",
    "PairwiseDimension",
    "RankResult",
    "RankStatistics",
    "RunResult",
    "SharedBusConfig",
    "SystemConfig",
    "Trace",
    "TraceNode",
    "read_comm_groups",
    "read_memory_config",
    "read_network_config",
    "read_system_config",
    "read_trace",
    "read_traces",
    "simulate",
]
