"""What speaks ASTRA-sim's formats; written from a description of its behaviour, not its source."""

from astra_sim.network_config import (
    Dimension,
    NetworkConfig,
    read_network_config,
    unaware_message_ns,
)

__all__ = ["Dimension", "NetworkConfig", "read_network_config", "unaware_message_ns"]
