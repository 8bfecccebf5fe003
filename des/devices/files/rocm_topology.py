"""Reader of ``rocm-smi --showtopo``: weights, hops and link types of AMD GPUs, and NUMA nodes.

One hop is XGMI (Infinity Fabric), two pass a processor, three the link between processors; each
XGMI link on the way adds 15 to the weight. AMD, "Instinct MI200 optimization guide", "Hardware
verification with ROCm"; the kernel's ``KFD_CRAT_XGMI_WEIGHT``. ASSUMED: GPUs of one processor are
below several of its host bridges.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import product

from des.devices.files.link_matrix import LinkMatrix

_BANNER = re.compile(r"\s*[=-]{3,}\s*(\S.*?)\s*[=-]{3,}\s*")
_TABLE = re.compile(r"(Weight|Hops|Link Type) between two GPUs")
_NUMA = re.compile(r"\s*GPU\s*\[?(\d+)\]?\s*:\s*\(Topology\) Numa (Node|Affinity): (-?\d+)\s*")
_XGMI_WEIGHT = 15
_PCIE_TOKENS = {"1": "PIX", "2": "NODE", "3": "SYS"}
TABLES = ("Weight", "Hops", "Link Type")


_Rows = list[tuple[int, list[str]]]
"""Numbers of lines, from 1, and their words; the banner of a table first, without any."""


def has_rocm_topology(lines: Sequence[str]) -> bool:
    """Whether some lines hold a table of the command."""
    return any((found := _BANNER.fullmatch(line)) and _TABLE.match(found[1]) for line in lines)


def read_rocm_topology(lines: Sequence[str]) -> LinkMatrix:
    """Read the three tables and the NUMA nodes below them.

    Raises
    ------
    ValueError
        If a table is missing or comes twice, rows do not fit their header, or tables contradict
        each other; names the line.
    """
    tables = _tables(lines)
    if missing := ", ".join(name for name in TABLES if name not in tables):
        raise ValueError(
            f"rocm-smi --showtopo must have the tables {', '.join(TABLES)} between two GPUs; "
            f"missing: {missing}"
        )
    names = _names(tables["Weight"])
    for name in TABLES[1:]:
        if (labels := _names(tables[name])) != names:
            raise ValueError(
                f"line {tables[name][0][0]}: table {name} must be of {' '.join(names)}, "
                f"got {' '.join(labels)}"
            )
    weights, hops, types = ([words[1:] for _, words in tables[name][2:]] for name in TABLES)
    tokens = [["X"] * len(names) for _ in names]
    for one, other in product(range(len(names)), repeat=2):
        if one != other:
            own = weights[one][other], hops[one][other], types[one][other]
            tokens[one][other] = _token(f"{names[one]} and {names[other]}", *own)
    node_of = _numa_nodes(lines, names)
    return LinkMatrix(
        names=names,
        tokens=tuple(map(tuple, tokens)),
        affinity_columns=("CPU Affinity", "NUMA Affinity"),
        affinities=tuple((None, node_of.get(name)) for name in names),
        weights=tuple(_whole(weights, names, "Weight")),
        hops=tuple(_whole(hops, names, "Hops")),
    )


def _tables(lines: Sequence[str]) -> dict[str, _Rows]:
    """Tables by name; each ends at the next banner."""
    tables: dict[str, _Rows] = {}
    current: _Rows = []
    for number, line in enumerate(lines, start=1):
        if banner := _BANNER.fullmatch(line):
            current = [(number, [])]
            if found := _TABLE.match(banner[1]):
                if found[1] in tables:
                    raise ValueError(f"line {number}: table {found[1]} comes twice")
                tables[found[1]] = current
        elif line.strip():
            current.append((number, line.split()))
    return tables


def _names(table: _Rows) -> tuple[str, ...]:
    """GPUs of a table whose rows are those of its header."""
    line, names = table[0][0], table[1][1] if len(table) > 1 else []
    if not names:
        raise ValueError(f"line {line}: the table must have a row for each GPU, got none")
    labels = [words[0] for _, words in table[2:]]
    if labels != names or not all(re.fullmatch(r"GPU\d+", name) for name in names):
        raise ValueError(
            f"line {line}: rows must be those of the header, {' '.join(names)}; "
            f"got {' '.join(labels) or 'none'}"
        )
    for line, words in table[2:]:
        if len(words) != len(names) + 1:
            raise ValueError(
                f"line {line}: row {words[0]} must have {len(names)} cells, got {len(words) - 1}"
            )
    return tuple(names)


def _token(pair: str, weight: str, hops: str, kind: str) -> str:
    """Token of two GPUs: XGMI with the number of links on the way, or a path over PCIe."""
    if kind == "XGMI" and weight.isdigit() and int(weight) and not int(weight) % _XGMI_WEIGHT:
        links = int(weight) // _XGMI_WEIGHT
        return "XGMI" if links == 1 else f"XGMI{links}"
    if kind == "PCIE" and hops in _PCIE_TOKENS:
        return _PCIE_TOKENS[hops]
    raise ValueError(
        f"link of {pair} must be XGMI with a weight of {_XGMI_WEIGHT} a link, or PCIE with 1 to 3 "
        f"hops; got {kind}, weight {weight}, hops {hops}"
    )


def _whole(
    cells: Sequence[Sequence[str]], names: Sequence[str], table: str
) -> Iterator[tuple[int, ...]]:
    for name, row in zip(names, cells, strict=True):
        if not all(cell.isdigit() for cell in row):
            raise ValueError(f"table {table}, row {name}: must be whole numbers, got {row}")
        yield tuple(map(int, row))


def _numa_nodes(lines: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """NUMA node of each GPU: its affinity, else its node; -1 is not known."""
    found: dict[tuple[str, str], str] = {}
    for number, line in enumerate(lines, start=1):
        if (row := _NUMA.fullmatch(line)) is None:
            continue
        name, what = f"GPU{row[1]}", row[2]
        if name not in names or (name, what) in found:
            wrong = "given twice" if name in names else f"of none of {' '.join(names)}"
            raise ValueError(f"line {number}: Numa {what} of {name} is {wrong}")
        if not row[3].startswith("-"):
            found[name, what] = row[3]
    both = ((name, found.get((name, "Affinity"), found.get((name, "Node")))) for name in names)
    return {name: node for name, node in both if node is not None}
