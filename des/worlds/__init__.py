"""Topology files that come with EastWest."""

from importlib.resources import files
from pathlib import Path

EAST_CENTRAL_WEST = Path(str(files(__package__) / "east_central_west.yaml"))
"""Three domains of 8 GPUs, 2-5 Gbit/s and 30-80 ms between them: the default world."""

FOUR_UNEVEN = Path(str(files(__package__) / "four_uneven.yaml"))
"""Four unequal domains listed in a bad order: a made-up world in which the placement matters."""

EAST_WEST_HUBS = Path(str(files(__package__) / "east_west_hubs.yaml"))
"""The ten clusters of the East-West-Computing plan; figures estimated from distances."""

AWS_LIKE = Path(str(files(__package__) / "aws_like.yaml"))
"""Six cloud regions on three continents, with prices; figures estimated from distances."""

TWO_SITES_OF_NODES = Path(str(files(__package__) / "two_sites_of_nodes.yaml"))
"""Two sites of 1,024 GPUs in nodes of 8: a made-up world with two levels of wires inside."""

WORLDS = {
    "east_central_west": EAST_CENTRAL_WEST,
    "four_uneven": FOUR_UNEVEN,
    "east_west_hubs": EAST_WEST_HUBS,
    "aws_like": AWS_LIKE,
    "two_sites_of_nodes": TWO_SITES_OF_NODES,
}
"""Shipped worlds by the name that can be given in the place of a file."""

_EXAMPLES = (
    "four_domains_0",
    "four_domains_1",
    "four_domains_2",
    "four_domains_3",
    "four_sites_1gbit_llama2_13b_1048k_tokens",
    "four_sites_5gbit_llama2_13b_1048k_tokens",
    "four_sites_5gbit_llama2_70b_1048k_tokens",
    "four_sites_5gbit_llama2_70b_4194k_tokens",
    "four_sites_25gbit_llama2_70b_1048k_tokens",
    "four_sites_100gbit_llama3_405b_1048k_tokens",
)

EXAMPLES = {name: Path(str(files(__package__) / f"examples/{name}.yaml")) for name in _EXAMPLES}
"""Worlds of the examples of whole decisions, by name; see ``examples/README.md``."""

EXAMPLE_JOBS = {
    name: Path(str(files(__package__) / f"examples/{name}.job.json")) for name in _EXAMPLES
}
"""Jobs of the examples, by the name of their world."""
