"""Section ``nodes`` of a domain in topology files: its servers, of a kind or file if known."""

from pathlib import Path

from des.base.strict_forms import StrictForm
from des.devices.files.server_files import read_files
from des.devices.presets import KIND_NAMES, simulated
from des.devices.server import Server
from des.world.files.quantity_fields import Bandwidth, Latency
from des.world.nodes import Nodes


class NodesForm(StrictForm):
    """The section ``nodes`` of a domain; left out, its GPUs are on one network.

    ``server`` is a kind of `des.devices.presets` or a file with what ``nvidia-smi topo -m`` prints,
    in the folder of the topology file. It has the number of GPUs, and where they are left out the
    cards that are nearest to a GPU, with their bandwidth. ``rack`` is that of all nodes, or a list
    of one a node; ``rack_uplink`` and ``rack_latency`` price the ways between racks.
    """

    gpus_per_node: int | None = None
    nics_per_node: int | None = None
    nic_bandwidth: Bandwidth | None = None
    nic_latency: Latency
    tensor_across_nodes: bool = False
    server: str | None = None
    rack: str | list[str] | None = None
    rack_uplink: Bandwidth | None = None
    rack_latency: Latency | None = None

    def to_nodes(self, num_gpus: int, folder: Path) -> Nodes:
        """Make the value for a domain of that number of GPUs.

        Raises
        ------
        ValueError
            If a figure is given neither here nor by the server, or is impossible.
        """
        server = None if self.server is None else _server_of(self.server, folder)
        cards = () if server is None else server.near_nics
        bandwidths = {card.bandwidth_bytes_per_s for card in cards}
        gpus = self._of("gpus_per_node", None if server is None else server.num_gpus)
        return Nodes(
            gpus_per_node=int(gpus),
            nics_per_node=int(self._of("nics_per_node", len(cards) or None)),
            nic_bandwidth_bytes_per_s=self._of(
                "nic_bandwidth", bandwidths.pop() if len(bandwidths) == 1 else None
            ),
            nic_latency_s=self.nic_latency,
            tensor_across_nodes=self.tensor_across_nodes,
            server=server,
            racks=self._racks(num_gpus // int(gpus) if gpus > 0 else 0),
            rack_uplink_bytes_per_s=self.rack_uplink,
            rack_latency_s=self.rack_latency or 0.0,
        )

    def _of(self, field: str, of_server: float | None) -> float:
        """Figure that is given, or else that of the server."""
        given: float | None = getattr(self, field)
        if given is None:
            given = of_server
        if given is None:
            why = "" if self.server is None else f", as server {self.server} does not tell it"
            raise ValueError(f"nodes.{field}: must be given{why}")
        return given

    def _racks(self, num_nodes: int) -> tuple[str, ...]:
        if isinstance(self.rack, str):
            return (self.rack,) * num_nodes
        return tuple(self.rack or ())


def _server_of(name: str, folder: Path) -> Server:
    """Kind of that name, or the server that a file in the folder tells of."""
    if name in KIND_NAMES:
        return simulated(name)
    if not (folder / name).is_file():
        raise ValueError(
            f"nodes.server: must be one of {', '.join(KIND_NAMES)}, or a file with the output of "
            f"nvidia-smi topo -m; got {name!r}"
        )
    return read_files([folder / name]).server.require_whole_gpus()
