"""Matrices of nvidia-smi topo -m: recorded outputs, what is written is read, variants of pastes."""

import pytest
from hypothesis import example, given, settings
from topo_outputs import OUTPUTS, READABLE, expected, matrix_of, server_in, servers

from des.devices.files.link_matrix import matrix_text
from des.devices.presets import simulated

FAILS = {"13": "line 6: row GPU4 has glued tokens, NODENODE", "14": "header lost its tabs"}


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_recorded_outputs_are_read_cell_by_cell(path):
    wanted = expected(path)
    matrix = matrix_of(path.read_text(encoding="utf-8"))

    assert [list(row) for row in matrix.tokens] == wanted["matrix"]
    assert list(matrix.names) == wanted["matrix_order"]
    assert list(matrix.affinity_columns) == wanted["affinity_columns"]
    for device, cells in zip(wanted["devices"], matrix.affinities, strict=True):
        if device["kind"] == "gpu":
            printed = [*cells, None, None][:2]
            assert printed == [device["cpu_affinity"], device["numa_affinity"]]


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_servers_of_recorded_outputs_have_their_affinities(path):
    wanted = {device["name"]: device for device in expected(path)["devices"]}
    server = server_in(path.read_text(encoding="utf-8"))

    for gpu in server.gpus:
        device = wanted[gpu.name]
        assert [list(span) for span in gpu.cpus] == (device["cpu_ranges"] or [])
        assert list(gpu.numa_nodes) == (device["numa_nodes"] or [])
        assert gpu.memory_numa_node == device["gpu_numa_id"]
    for card in server.nics:
        assert (card.device if card.device != card.name else None) == wanted[card.name]["alias"]


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.stem)
def test_a_strict_reading_refuses_headers_without_tabs(path):
    text = path.read_text(encoding="utf-8")
    if path.name[:2] in FAILS:
        with pytest.raises(ValueError, match=FAILS[path.name[:2]]):
            matrix_of(text, strict=True)
    else:
        assert matrix_of(text, strict=True) == matrix_of(text)


def test_glued_cells_are_refused_by_header_row_and_cell():
    text = next(path for path in OUTPUTS if path.name.startswith("13")).read_text(encoding="utf-8")

    with pytest.raises(ValueError, match="line 1: header has glued names, NIC8NIC9; line 6: row"):
        matrix_of(text)


@given(server=servers())
@example(server=simulated("dgx-1-v100"))
@settings(max_examples=60)
def test_what_is_written_is_read(server):
    read = server_in(matrix_text(server))

    assert (read.tokens, read.device_names) == (server.tokens, server.device_names)
    assert [(gpu.cpus, gpu.numa_nodes, gpu.memory_numa_node) for gpu in read.gpus] == [
        (gpu.cpus, gpu.numa_nodes, gpu.memory_numa_node) for gpu in server.gpus
    ]
    assert [card.device for card in read.nics] == [card.device for card in server.nics]


@given(server=servers())
@settings(max_examples=60)
def test_tabs_that_a_terminal_made_into_blanks_change_nothing(server):
    text = matrix_text(server)

    assert server_in("\n".join(line.expandtabs().rstrip() for line in text.split("\n"))) == (
        server_in(text)
    )


PLAIN = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\t56-111,168-223\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = bonded NVLinks\n  PIX  = one bridge\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)
AROUND = {
    "line ends of Windows": PLAIN.replace("\n", "\r\n"),
    "byte order mark": f"\ufeff{PLAIN}",
    "prompt and log": f"root@node1:~# nvidia-smi topo -m\n{PLAIN}root@node1:~# exit\n",
    "fence": f"```\n{PLAIN}```\n",
    "quotation": "".join(f"> {line}\n" for line in PLAIN.splitlines()),
    "names of machines": "".join(f"node1: {line}\n" for line in PLAIN.splitlines()),
    "comment": "".join(f"# {line}\n" for line in PLAIN.expandtabs().splitlines()),
    "indentation": "".join(f"    {line}\n" for line in PLAIN.splitlines()),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "escape codes": PLAIN.replace("\tGPU0", "\x1b[4m\tGPU0", 1).replace(" ID\n", " ID\x1b[0m\n"),
    "codes without escape": PLAIN.replace("\tGPU0", "\t[4mGPU0", 1).replace(" ID\n", " ID[0m\n"),
    "single blanks": "\n".join(" ".join(line.split()) for line in PLAIN.split("\n")),
    "double tabs": PLAIN.replace("\t", "\t\t"),
    "list of GPUs before": f"GPU 0: NVIDIA H100 (UUID: GPU-1)\n  MIG 1g Device 0: (U)\n{PLAIN}",
    "states of peer access": f"{PLAIN}\n\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n",
    "rows in another order": "\n".join(PLAIN.split("\n")[i] for i in (0, 3, 2, 1, 11, 12, 13, 14)),
}


@pytest.mark.parametrize("around", AROUND)
def test_what_is_around_a_table_makes_no_difference(around):
    assert server_in(AROUND[around]) == server_in(PLAIN)


HEADER = "        GPU0    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
CARD = "NIC0    PIX      X\n"


@pytest.mark.parametrize(
    ("tail", "cpus", "nodes", "memory"),
    [
        ("0-7     0               N/A", ((0, 7),), (0,), None),
        ("        1               N/A", (), (1,), None),
        ("                        N/A", (), (), None),
        ("0-7             N/A             N/A", ((0, 7),), (), None),
        ("6,14    0-1             8", ((6, 6), (14, 14)), (0, 1), 8),
    ],
)
def test_cells_of_affinity_are_told_by_where_they_stand(tail, cpus, nodes, memory):
    gpu = server_in(f"{HEADER}GPU0     X      PIX     {tail}\n{CARD}").gpus[0]

    assert (gpu.cpus, gpu.numa_nodes, gpu.memory_numa_node) == (cpus, nodes, memory)


@pytest.mark.parametrize("columns", ["", "\tCPU Affinity", "\tCPU Affinity\tNUMA Affinity"])
def test_older_drivers_print_fewer_columns(columns):
    cells = ["", "\t0-7", "\t0-7\t\tN/A"][columns.count("\t")]
    server = server_in(f"\tGPU0\tGPU1{columns}\nGPU0\tX\tSOC{cells}\nGPU1\tSOC\tX{cells}\n")

    assert server.gpu_tokens == (("X", "SOC"), ("SOC", "X"))
    assert server.gpus[1].cpus == (((0, 7),) if columns else ())


def test_a_legend_without_nvlink_is_that_of_pcie_alone():
    assert not matrix_of(PLAIN).is_pcie_only
    assert matrix_of(PLAIN.replace("  NV#  = bonded NVLinks\n", "")).is_pcie_only
