"""Tables of measured all-reduces: both forms read alike, machines by name, bad input."""

import json

import pytest

from calibration.measured.collective_table import (
    COLUMNS,
    SHIPPED_TABLE,
    read_measured_table,
    server_of_node,
)

ROW = ("a100_dgx", 16, 8, 1048576, 0.464)


def written(path, *rows, header=COLUMNS):
    """Write a CSV of some rows."""
    lines = [header, *rows]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    return path


def test_the_shipped_table_has_112_cells_of_four_machines():
    table = read_measured_table(SHIPPED_TABLE)

    assert len(table.cells) == 112
    assert len({cell.node for cell in table.cells}) == 4
    assert sum(cell.payload_bytes >= 2**20 for cell in table.cells) == 56
    assert "MIT licence" in table.source


def test_csv_and_json_hold_the_same_cells(tmp_path):
    shipped = read_measured_table(SHIPPED_TABLE)
    rows = [(*cell.row, cell.payload_bytes, repr(cell.time_s * 1e3)) for cell in shipped.cells]

    read = read_measured_table(written(tmp_path / "table.csv", *rows))
    assert [(*cell.row, cell.payload_bytes) for cell in read.cells] == [
        (*cell.row, cell.payload_bytes) for cell in shipped.cells
    ]
    assert [cell.time_s for cell in read.cells] == pytest.approx(
        [cell.time_s for cell in shipped.cells]
    )


def test_machines_are_those_of_the_table_and_kinds_of_servers():
    pairs = server_of_node("h100_pairwise_nvlink")

    assert pairs.gpus[0].model == "h100_nvl"
    assert pairs.gpu_tokens[0] == ("X", "NV12", "NODE", "NODE")
    assert server_of_node("a100_dgx").name == "dgx-a100"
    assert server_of_node("dgx-1-v100").gpus[0].model == "v100"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (4, "-0.1", r"line 2: median_ms: .*greater than 0"),
        (4, "nan", r"line 2: median_ms: .*finite"),
        (4, "inf", r"line 2: median_ms: .*finite"),
        (4, "", r"line 2: median_ms: "),
        (3, "0", r"line 2: bytes: .*greater than 0"),
        (3, "1.5", r"line 2: bytes: "),
        (2, "3", r"line 2.workers: must be a multiple of gpus_per_node, got 16 and 3"),
        (2, "16", r"line 2.gpus_per_node: must be at most 8 for a100_dgx, got 16"),
        (1, "1", r"line 2: workers: .*greater than or equal to 2"),
        (0, "nvswitch", r"line 2.node: nvswitch has no GPU model with ports: .*got none"),
        (0, "a100_dgz", r"line 2.node: unknown kind 'a100_dgz'; did you mean 'a100_dgx'"),
    ],
)
def test_bad_cells_of_a_csv_are_refused_by_line_and_field(tmp_path, place, value, message):
    row = [*ROW]
    row[place] = value
    with pytest.raises(ValueError, match=f"table.csv: {message}"):
        read_measured_table(written(tmp_path / "table.csv", row))


def test_other_columns_no_rows_and_cells_given_twice_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    with pytest.raises(ValueError, match=r"line 1: columns must be node,workers,.*got node,bytes"):
        read_measured_table(written(path, ROW, header=("node", "bytes")))
    with pytest.raises(ValueError, match="rows must be at least one"):
        read_measured_table(written(path))
    with pytest.raises(ValueError, match="cells must differ"):
        read_measured_table(written(path, ROW, ROW))
    with pytest.raises(ValueError, match="line 2: must have 5 cells, one a column"):
        read_measured_table(written(path, (*ROW, 1)))
    with pytest.raises(ValueError, match="line 2: must have 5 cells, one a column"):
        read_measured_table(written(path, ROW[:3]))
    with pytest.raises(ValueError, match=r"nowhere.csv: cannot be read"):
        read_measured_table(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"median_ms": -1.0}, r"measurements\[0\].points\[0\].median_ms: .*greater than 0, got -1"),
        ({"median_ms": float("nan")}, "median_ms"),
        ({"bytes": "many"}, "bytes"),
        ({"size": 1}, "unknown key"),
    ],
)
def test_bad_cells_of_a_json_are_refused_by_place(tmp_path, change, message):
    content = json.loads(SHIPPED_TABLE.read_text("utf-8"))
    content["measurements"][0]["points"][0] |= change
    path = tmp_path / "table.json"
    path.write_text(json.dumps(content))

    with pytest.raises(ValueError, match=f"table.json: .*{message}"):
        read_measured_table(path)


def test_machines_that_gpus_do_not_fill_are_refused(tmp_path):
    content = json.loads(SHIPPED_TABLE.read_text("utf-8"))
    content["measurements"][2]["workers"] = 5
    path = tmp_path / "table.json"
    path.write_text(json.dumps(content))

    with pytest.raises(ValueError, match=r"measurements\[2\].workers: must be a multiple"):
        read_measured_table(path)
