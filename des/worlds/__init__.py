"""Topology files that come with EastWest."""

from importlib.resources import files
from pathlib import Path

EAST_CENTRAL_WEST = Path(str(files(__package__) / "east_central_west.yaml"))
"""Three domains of 8 GPUs, 2-5 Gbit/s and 30-80 ms between them: the default world."""

FOUR_UNEVEN = Path(str(files(__package__) / "four_uneven.yaml"))
"""Four unequal domains listed in a bad order: a made-up world in which the placement matters."""

WORLDS = {"east_central_west": EAST_CENTRAL_WEST, "four_uneven": FOUR_UNEVEN}
"""Shipped worlds by the name that can be given in the place of a file."""
