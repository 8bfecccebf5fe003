"""Recorded outputs of nvidia-smi topo -m, and random servers for tests of readers."""

import json
from pathlib import Path

from hypothesis import strategies as st

from des.devices.files.link_matrix import LinkMatrix
from des.devices.files.matrix_text import read_matrix
from des.devices.files.pasted import plain_lines
from des.devices.server import Gpu, Nic, Server

GOLDEN = Path(__file__).parent / "golden" / "topo"
OUTPUTS = tuple(sorted(GOLDEN.glob("*.txt")))
READABLE = tuple(path for path in OUTPUTS if not path.name.startswith("13"))


def expected(path: Path) -> dict:
    """Return what a reader must make of an output."""
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def matrix_of(text: str, *, strict: bool = False) -> LinkMatrix:
    """Read a matrix from a text."""
    return read_matrix(plain_lines(text), strict=strict)


def server_in(text: str, *, strict: bool = False) -> Server:
    """Read a server from a text."""
    return matrix_of(text, strict=strict).server("pasted")


TOKENS = st.sampled_from(["NV1", "NV4", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"])
SPANS = st.sampled_from([(), ((0, 47), (96, 143)), ((7, 7),), ((0, 0), (4, 6))])
NODES = st.sampled_from([(), (0,), (3,), (0, 1), (0, 1, 4)])


@st.composite
def servers(draw: st.DrawFn) -> Server:
    """Any server that the command can print: what its cells have no place for is not in it."""
    numbers = draw(st.lists(st.integers(0, 31), min_size=1, max_size=6, unique=True))
    names = draw(
        st.lists(
            st.sampled_from(
                ["NIC0", "NIC1", "NIC10", "mlx5_0", "mlx5_bond_0", "ibp12s0", "hfi1_0"]
            ),
            max_size=4,
            unique=True,
        )
    )
    count = len(numbers) + len(names)
    lower = [[draw(TOKENS) for _ in range(row)] for row in range(count)]
    tokens = [
        ["X" if one == other else lower[max(one, other)][min(one, other)] for other in range(count)]
        for one in range(count)
    ]
    return Server(
        name="pasted",
        gpus=tuple(
            Gpu(
                number=number,
                cpus=draw(SPANS),
                numa_nodes=draw(NODES),
                memory_numa_node=draw(st.sampled_from([None, 1, 10])),
            )
            for number in numbers
        ),
        nics=tuple(
            Nic(name=name, device=f"mlx5_{name[3:]}" if name.startswith("NIC") else name)
            for name in names
        ),
        tokens=tuple(map(tuple, tokens)),
    )
