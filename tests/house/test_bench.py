"""Benchmarks: their worlds, runs and pages; the figures themselves are not tested."""

import csv
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import needs_chromium

from astra_sim.files.execution_trace import read_traces
from bench.__main__ import PARTS, main
from bench.astra_inputs import Pipeline, all_reduce, pipeline
from bench.batches import event_by_event, lanes_of
from bench.execution_traces import write_traces
from bench.kernels.repeated import run_repeatedly
from bench.plain_simpy import plain_makespan_s
from bench.report import (
    PAGE,
    Picture,
    Section,
    Table,
    column,
    machine,
    markdown,
    write,
)
from bench.tasks import even_split, placement_task
from bench.worlds import FAIR, LAWS, SIZES, Size, job, mesh, returning, straight
from des import Movement, simulate
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import STAGE_BUSY
from des.compiled.lanes import no_record
from des.compiled.operation_table import operation_table

CHEAP = [
    pytest.param(name, marks=needs_chromium) if name == "explorer" else name
    for name in PARTS
    if name != "learning"
]
SIZE = Size(num_stages=3, num_microbatches=4)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Two columns."""

    name: str = column("name")
    rate: float | None = column("per second", ",.1f")


def section(**changes: object) -> Section:
    rows = [Row(name="some", rate=1234.56), Row(name="none", rate=None)]
    values = {"name": "speed", "tables": [Table(title="Speed", rows=rows)], **changes}
    return Section(**values)


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text, "utf-8")
    return path


def pages_tables(text: str) -> list[list[list[str]]]:
    """Cells of all tables of a page, headings first."""
    blocks = re.findall(r"(?m)(?:^\|.*\|\n?)+", text)
    return [
        [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        for block in blocks
    ]


# Pages.


def test_section_as_markdown():
    text = markdown(section(notes=["A note."]))

    assert text == (
        f"`python -m bench --only speed --write`. {machine()}\n\n"
        "**Speed**\n\n"
        "| name | per second |\n| --- | ---: |\n| some | 1,234.6 |\n| none |  |\n\n"
        "A note."
    )
    assert not re.search(r"20\d\d-\d\d", text)  # no dates


def test_section_is_written_between_its_marks_and_again(tmp_path):
    before = "# Speed\n\n<!-- bench speed -->\nold\n<!-- end of bench speed -->\nafter\n"
    path = page(tmp_path, before)
    picture = Picture(file_name="speed.png", caption="Speed", content=b"png")

    tables = [*section().tables, Table(title="Aside", rows=section().tables[0].rows, in_page=False)]
    written = section(tables=tables, pictures=[picture])
    write(written, path)
    once = path.read_text("utf-8")
    write(written, path)

    assert once.startswith("# Speed\n\n<!-- bench speed -->\n`python -m bench")
    assert once.endswith("![Speed](speed.png)\n<!-- end of bench speed -->\nafter\n")
    assert "old" not in once
    assert once.count("1,234.6") == 1
    assert "**Aside**: `figures/bench_speed_aside.csv`." in once
    assert (tmp_path / "figures/bench_speed_aside.csv").is_file()
    assert path.read_text("utf-8") == once
    assert (tmp_path / "speed.png").read_bytes() == b"png"
    found = (tmp_path / "figures/bench_speed_speed.csv").read_text("utf-8")
    assert found.splitlines()[0] == "name,per second"
    assert float(found.splitlines()[1].removeprefix("some,")) == pytest.approx(1234.6, abs=0.05)
    assert found.splitlines()[2] == "none,"


@pytest.mark.parametrize(
    "text", ["", "<!-- bench speed -->", "<!-- end of bench speed --> <!-- bench speed -->"]
)
def test_page_without_a_place_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match="must hold the lines '<!-- bench speed -->' and"):
        write(section(), page(tmp_path, text))


def test_the_page_of_the_project_has_a_place_for_every_part():
    text = PAGE.read_text("utf-8")

    for name in (*PARTS, "revisions"):
        assert f"<!-- bench {name} -->" in text.partition(f"<!-- end of bench {name} -->")[0]


# What is measured.


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_worlds_are_full_meshes_and_plans_have_their_stages(size):
    world, num_layers = mesh(size.num_stages), job(size.num_microbatches).num_layers
    assert len(world.links) == size.num_stages * (size.num_stages - 1)

    once, back = straight(size, num_layers), returning(size, num_layers)
    assert [stage.domain for stage in once.placement.stages] == list(range(size.num_stages))
    assert len(back.placement.stages) == size.num_stages
    assert len(set(back.placement.domain_of_layer)) == (size.num_stages + 1) // 2


@pytest.mark.parametrize("num_domains", [3, 4, 6])
def test_even_split_is_the_straight_plan(num_domains):
    task = placement_task(SIZE, "moving", num_domains)

    assert task.codec.decode(even_split(SIZE, task).tolist()) == (
        straight(SIZE, task.workload.num_layers).placement
    )


@pytest.mark.parametrize("seed", range(4))
def test_textbook_simpy_agrees_on_moving_links(seed):
    topology, workload = mesh(3).epoch_of(seed), job(6)
    plan = straight(SIZE, workload.num_layers)
    assert topology.movement is not None

    assert plain_makespan_s(topology, workload, plan) == pytest.approx(
        simulate(topology, workload, plan).makespan_s, rel=1e-9
    )


def test_batches_without_an_environment_simulate_what_the_engine_does():
    workload, world = job(SIZE.num_microbatches), mesh(3, LAWS["steady"])
    plan = straight(SIZE, workload.num_layers)
    table = operation_table(plan.schedule, SIZE.num_stages, SIZE.num_microbatches)
    lanes = lanes_of(world, workload, plan)

    run_repeatedly(lanes, table.rows, table.num_stages, no_record(), 2)
    result = simulate(world, workload, plan)
    assert lanes.makespan_s.tolist() == [[result.makespan_s] * LANES]
    busy_s = [[use.busy_s] * LANES for use in result.stages]
    np.testing.assert_array_equal(lanes.stages[:, STAGE_BUSY], busy_s)


@pytest.mark.parametrize("plan", [straight, returning])
def test_events_can_be_measured_on_any_plan(plan):
    workload = job(SIZE.num_microbatches)
    event_by_event(mesh(3), workload, plan(SIZE, workload.num_layers), num_seeds=2)()
    event_by_event(mesh(3, LAWS["moving"], FAIR), workload, straight(SIZE, 80), num_seeds=2)()


def test_moving_links_change_within_an_iteration():
    workload = job(8)
    world = dataclasses.replace(mesh(3), movement=Movement(law=LAWS["moving"], seed=1))

    makespan_s = simulate(world, workload, straight(SIZES[0], 80)).makespan_s
    assert makespan_s > 2 * LAWS["moving"].update_interval_s


@pytest.mark.parametrize(
    ("run", "case"),
    [
        (pipeline(), "large-pipe-1f1b-s8-m32-fc-aware"),
        (all_reduce("ring"), "large-ar-1GB-ring64-unaware"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_runs_beside_the_original_are_those_that_it_was_timed_on(golden_astra, run, case, tmp_path):
    ranks = json.loads((golden_astra / "astra" / case / "expected.json").read_text("utf-8"))[
        "ranks"
    ]
    run.write(tmp_path)

    assert {
        str(each.rank): {
            "finish_cycles": each.finish_cycles,
            "exposed_comm_cycles": each.exposed_communication_cycles,
        }
        for each in run.read_and_simulate(tmp_path).ranks
    } == ranks


def test_domains_of_the_engine_run_graphs_of_the_shape_of_a_golden_case(golden_astra, tmp_path):
    stages = Pipeline(
        num_stages=3, num_microbatches=4, num_gpus_per_stage=8, all_reduce_bytes=3_000_000
    )
    prefix = write_traces(tmp_path, map(stages.nodes, range(stages.num_ranks)))
    golden = golden_astra / "astra" / "geo-pp-tp8-dom3-m4-1" / "trace"
    fields = ("comm_tag", "comm_type", "pg_name")

    ours, theirs = (
        [
            [
                (node.id, node.type, node.dependencies, *map(node.attributes.get, fields))
                for node in trace.nodes
            ]
            for trace in read_traces(each, stages.num_ranks)
        ]
        for each in (prefix, golden)
    )
    assert ours == theirs


# The command.


@pytest.mark.parametrize("name", CHEAP)
def test_quick_run_of_a_part_fills_its_place(name, tmp_path, capsys):
    path = page(tmp_path, f"<!-- bench {name} -->\n<!-- end of bench {name} -->\n")

    assert main(["--quick", "--only", name, "--write", str(path)]) == 0

    text = path.read_text("utf-8")
    files = [tmp_path / name for name in re.findall(r"`(figures/.*?\.csv)`", text)]
    in_page = pages_tables(text)
    assert all(len(rule) == len(heads) for heads, rule, *_ in in_page)
    tables = [[heads, *rows] for heads, _, *rows in in_page]
    tables += [list(csv.reader(file.read_text("utf-8").splitlines())) for file in files]
    assert tables
    for heads, *rows in tables:
        assert rows
        assert len(set(heads)) == len(heads)
        assert all(len(row) == len(heads) for row in rows)
        assert all(row[0] for row in rows)
        assert not any(cell in ("nan", "inf", "None") for row in rows for cell in row)
    for file_name in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / file_name).read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    words = {word for heads, *_ in tables for head in heads for word in head.split()}
    assert all(word in shown for word in words)


def test_page_is_checked_before_anything_is_measured(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "learning", "--write", str(page(tmp_path, "no place"))])
    assert "must hold the lines '<!-- bench learning -->'" in capsys.readouterr().err


def test_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "weather"])
    assert "invalid choice: 'weather'" in capsys.readouterr().err
