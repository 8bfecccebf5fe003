"""An engine of our own with ASTRA-sim's files and cycle counts.

Written from a description of ASTRA-sim's behaviour and results of its programs, not its source.
"""

from typing import TYPE_CHECKING

from astra_sim.base.lazy import lazy_names

if TYPE_CHECKING:
    from astra_sim.core.result import (
        IncompleteRunError,
        NodeSpan,
        RankResult,
        RankStatistics,
        RunResult,
    )
    from astra_sim.files.comm_groups import read_comm_groups
    from astra_sim.files.errors import AstraSimError
    from astra_sim.files.execution_trace import (
        CollectiveType,
        NodeType,
        Trace,
        TraceNode,
        read_trace,
        read_traces,
    )
    from astra_sim.files.memory_config import MemoryConfig, read_memory_config
    from astra_sim.files.network_config import (
        BandwidthChange,
        Dimension,
        NetworkConfig,
        PairwiseDimension,
        read_network_config,
    )
    from astra_sim.files.system_config import (
        Algorithm,
        SharedBusConfig,
        SystemConfig,
        read_system_config,
    )
    from astra_sim.run.simulate import RunOptions, simulate

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
    "PairwiseDimension",
    "RankResult",
    "RankStatistics",
    "RunOptions",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "astra_sim.core.result": "IncompleteRunError NodeSpan RankResult RankStatistics RunResult",
        "astra_sim.files.comm_groups": "read_comm_groups",
        "astra_sim.files.errors": "AstraSimError",
        "astra_sim.files.execution_trace": "CollectiveType NodeType Trace TraceNode read_trace "
        "read_traces",
        "astra_sim.files.memory_config": "MemoryConfig read_memory_config",
        "astra_sim.files.network_config": "BandwidthChange Dimension NetworkConfig "
        "PairwiseDimension read_network_config",
        "astra_sim.files.system_config": "Algorithm SharedBusConfig SystemConfig "
        "read_system_config",
        "astra_sim.run.simulate": "RunOptions simulate",
    },
)
