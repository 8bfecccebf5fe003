"""`rocm-smi --showtopo` by hand, in the forms of several versions; damage is refused by line."""

import json

import pytest

from des.devices.closeness import distance
from des.devices.files.server_files import read_files
from scenarios.devices.command import main


def table(title, rows):
    """One table, as the command pads it."""
    names = [f"GPU{each}" for each in range(len(rows))]
    lines = [f"{f' {title} between two GPUs ':=^80}", "       " + "".join(f"{n:13}" for n in names)]
    lines += [f"{name:7}{''.join(f'{cell!s:13}' for cell in row)}"
              for name, row in zip(names, rows, strict=True)]  # fmt: skip
    return "\n".join(lines) + "\n\n"


NUMA = "".join(
    f"GPU[{gpu}]\t\t: (Topology) Numa Node: {gpu // 2}\n"
    f"GPU[{gpu}]\t\t: (Topology) Numa Affinity: {gpu // 2}\n"
    for gpu in range(4)
)
END = f"{' End of ROCm SMI Log ':=^80}\n"
WEIGHT = table("Weight", [[0, 15, 72, 72], [15, 0, 72, 72], [72, 72, 0, 30], [72, 72, 30, 0]])
HOPS = table("Hops", [[0, 1, 3, 3], [1, 0, 3, 3], [3, 3, 0, 1], [3, 3, 1, 0]])
PCIE = ["PCIE", "PCIE"]
TYPES = table("Link Type", [[0, "XGMI", *PCIE], ["XGMI", 0, *PCIE],
                            [*PCIE, 0, "XGMI"], [*PCIE, "XGMI", 0]])  # fmt: skip
HEAD = f"{' ROCm System Management Interface ':=^80}\n"
WHOLE = f"{HEAD}{WEIGHT}{HOPS}{TYPES}{' Numa Nodes ':=^80}\n{NUMA}{END}"


def read(tmp_path, text):
    path = tmp_path / "rocm.txt"
    path.write_text(text, encoding="utf-8")
    return read_files([path])


def test_link_types_weights_hops_and_numa_nodes_of_amd_gpus_are_read(tmp_path):
    found = read(tmp_path, WHOLE)

    assert found.server.tokens == (
        ("X", "XGMI", "SYS", "SYS"),
        ("XGMI", "X", "SYS", "SYS"),
        ("SYS", "SYS", "X", "XGMI2"),
        ("SYS", "SYS", "XGMI2", "X"),
    )
    assert [gpu.numa_nodes for gpu in found.server.gpus] == [(0,), (0,), (1,), (1,)]
    assert found.matrix.weights[2] == (72, 72, 0, 30)
    assert found.matrix.hops[2] == (3, 3, 0, 1)


def test_a_link_between_two_amd_gpus_is_closer_than_pcie_and_a_way_over_two_links_is_none(tmp_path):
    server = read(tmp_path, WHOLE).server

    assert server.nvlinks[0] == (0, 1, 0, 0)
    assert server.nvlinks[2] == (0, 0, 0, 0)
    assert server.nvlink_components == ((0, 1), (2,), (3,))
    assert distance("XGMI2") == distance("NV12") < distance("PIX")


def test_gpus_of_one_processor_pass_its_bridges_and_an_unknown_numa_affinity_is_that_of_the_node(
    tmp_path,
):
    pcie = WHOLE.replace("XGMI", "PCIE").replace("   1  ", "   2  ").replace(
        "Affinity: 1", "Affinity: -1"
    )  # fmt: skip
    server = read(tmp_path, pcie.replace("GPU[", "GPU ").replace("]\t\t:", "          :")).server

    assert server.tokens[0] == ("X", "NODE", "SYS", "SYS")
    assert [gpu.numa_nodes for gpu in server.gpus] == [(0,), (0,), (1,), (1,)]


def test_placing_takes_the_two_amd_gpus_that_a_link_joins(tmp_path, capsys):
    path = tmp_path / "rocm.txt"
    path.write_text(WHOLE, encoding="utf-8")

    assert main(["place", "--file", str(path), "--gpus", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gpus"] == [0, 1]
    assert main(["show", "--file", str(path), "--format", "tree"]) == 0
    assert "joined by XGMI: GPUs 0-1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WHOLE.replace(HOPS, ""), "missing: Hops"),
        (WHOLE + WEIGHT, "table Weight comes twice"),
        (WHOLE.replace("GPU3   72 ", "GPU3      "), "line 7: row GPU3 must have 4 cells, got 3"),
        (WHOLE.replace("GPU3   72 ", "GPU4   72 "), "line 2: rows must be those of the header"),
        (WHOLE.replace("30 ", "31 "), "GPU2 and GPU3 must be XGMI with a weight of 15 a link"),
        (WHOLE.replace("PCIE", "UNKN"), "GPU0 and GPU2 must be XGMI .* got UNKN, weight 72, hops"),
        (WHOLE.replace("GPU2   72 ", "GPU2   15 ").replace("GPU2   PCIE", "GPU2   XGMI"),
         "GPU2 and GPU0 must be the same both ways"),
        (WHOLE.replace("GPU[3]", "GPU[4]"), "Numa Node of GPU4 is of none of GPU0 GPU1 GPU2 GPU3"),
        (f"{HEAD}{TYPES}{END}", "missing: Weight, Hops"),
    ],
)  # fmt: skip
def test_damaged_tables_of_amd_gpus_are_refused_by_line(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)
