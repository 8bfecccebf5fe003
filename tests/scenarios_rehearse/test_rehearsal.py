"""Rehearsals: predictions that scale, differences by hand, failures by name, and a real one."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from bound_cases import bound_plan, job, sites
from command_output import assert_refused
from launch_cases import bound_of

from des.base.command import UsageError
from scenarios.iteration.runtime_job import RUNTIME, rank_of_stages, read_runtime_job
from scenarios.launch.command import write_launch
from scenarios.rehearse.command import main
from scenarios.rehearse.emulated_links import require_emulation
from scenarios.rehearse.rehearsal import RankFailedError, RankProcesses
from scenarios.rehearse.rehearsed_world import RehearsedWorld
from scenarios.rehearse.time_differences import PASSES, Comparison


def bound():
    """Two stages at two sites, under the reference runtime."""
    plan = replace(bound_plan("0*16,1*16", "8x1x1"), sends="overlapped")
    return bound_of(plan, sites(), job(num_microbatches=4), "reference")


def world(**changes):
    """The plan at a length of its own on links of 0.1 Gbit/s."""
    settings = {"receives": "first", "num_connections": 2, "hosts": "linux_tuned"}
    settings |= {"scale": 1.0, "link_gbit": 0.1} | changes
    return RehearsedWorld(bound=bound(), **settings)


def test_a_prediction_scales_with_all_its_times():
    """Notices keep their 48 bytes, which take 4 microseconds."""
    whole = world().predicted().makespan_s
    assert whole == pytest.approx(bound().step_s, rel=1e-3)
    for scale in (0.1, 3.0):
        assert world(scale=scale).predicted().makespan_s == pytest.approx(scale * whole, rel=1e-3)


def test_links_are_slowed_down_alike_and_never_sped_up():
    assert world().link_factor == pytest.approx(0.1 / 10.0)
    assert world(link_gbit=20.0).link_factor == 1.0
    assert world(scale=0.5).byte_scale == pytest.approx(0.5 * 0.01)


def test_stock_receives_on_a_shared_connection_are_not_quicker():
    stock = world(receives="stock", num_connections=1).predicted().makespan_s

    assert stock > world().predicted().makespan_s


def records_of(result, late_from, late_s):
    """What two ranks would say of a step whose first stage does passes late from one on."""
    found = [{"spans": [], "end_s": result.makespan_s} for _ in range(2)]
    for span in result.spans:
        own = found[span.stage]["spans"]
        late = late_s if span.stage == 0 and len(own) >= late_from else 0.0
        kind = {"D": "I"}.get(span.kind, span.kind)
        own.append((span.stage, kind, span.microbatch, span.start_s + late, span.end_s + late))
    found[0]["end_s"] += late_s
    return found


def test_a_late_message_is_the_whole_difference():
    predicted = world().predicted()
    kinds = [span.kind for span in predicted.spans if span.stage == 0]
    found = Comparison.of_records(
        predicted, records_of(predicted, kinds.index("B"), 0.25), [[0], [1]]
    )

    assert found.last_rank == 0
    parts = {part.name: part for part in found.parts()}
    assert sum(part.difference_s for part in parts.values()) == pytest.approx(0.25)
    assert parts["gradients from B"].difference_s == pytest.approx(0.25)
    assert parts[PASSES].difference_s == pytest.approx(0.0, abs=1e-9)
    assert found.largest_wait().name == "gradients from B, before B0 of stage 0"
    assert [panel.title for panel in found.figure().panels] == ["predicted", "measured"]


def ranks_that_say(*texts):
    """Running ranks, each of which has said a text and gone."""
    ranks = RankProcesses(["East", "West"])
    for text in texts:
        (theirs, to_rank), (from_rank, said) = os.pipe(), os.pipe()
        os.write(said, text.encode())
        os.close(said)
        os.close(theirs)
        ranks.add(to_rank, from_rank)
    return ranks


def test_a_rank_that_dies_is_named_with_its_last_line():
    ranks = ranks_that_say('{"ready": 0}\n', "connecting\nno route to host\n")

    with pytest.raises(RankFailedError, match=r"rank 1 in West .* said last: no route to host"):
        ranks.documents(10.0)
    ranks.close()


def test_documents_come_rank_by_rank():
    ranks = ranks_that_say('{"ready": 0}\n', 'a warning\n{"ready": 1}\n')

    assert ranks.documents(10.0) == [{"ready": 0}, {"ready": 1}]
    ranks.close()


def launched(folder):
    """Folder of the launch of the plan."""
    write_launch(bound(), None, folder / "launch")
    return folder / "launch"


def test_a_user_that_is_not_root_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    out = tmp_path / "out"
    argv = [str(launched(tmp_path)), "--out", str(out)]
    assert_refused(main, argv, "rehearse: must run as root", capsys, unwritten=out)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--receives", "late"], "receives must be one of first, stock; got late"),
        (["--iterations", "0"], "iterations must be at least 1, got 0"),
        (["--hosts", "bsd"], "hosts must be one of .* got 'bsd'"),
    ],
)
def test_flags_that_cannot_be_are_refused(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    argv = [str(launched(tmp_path)), "--out", str(out), *flags]
    assert_refused(main, argv, message, capsys, unwritten=out)


def test_stages_without_a_rank_are_refused(tmp_path):
    own = read_runtime_job((launched(tmp_path) / RUNTIME).read_text("utf-8"))

    assert rank_of_stages(own) == [0, 1]
    with pytest.raises(ValueError, match="stages_of_rank must have each of 2 stages once"):
        rank_of_stages(own.model_copy(update={"stages_of_rank": [[0], [0]]}))


def why_not():
    """Reason why this machine cannot emulate links; empty where it can."""
    try:
        require_emulation()
    except UsageError as error:
        return str(error)
    made = subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True)
    return made.stderr.decode() if made.returncode else ""


def children():
    """Processes that this one has started and not waited for; other tests may have left some."""
    text = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text("utf-8")
    return set(text.split())


@pytest.mark.skipif(bool(why_not()), reason=f"links cannot be emulated here: {why_not()}")
def test_a_rehearsal_runs_and_leaves_nothing(tmp_path, capsys):
    """No step is quicker than its passes; processes, namespaces and devices are gone."""
    folder, out = launched(tmp_path), tmp_path / "out"
    before = children()
    flags = ["--iterations", "1", "--scale", "0.5", "--json"]
    assert main([str(folder), "--out", str(out), *flags]) == 0
    found = json.loads(capsys.readouterr().out)

    own = read_runtime_job((folder / RUNTIME).read_text("utf-8"))
    least_s = max(4 * 0.5 * sum(one.durations_s[:2]) for one in own.stages)
    assert found["predicted_s"] >= least_s
    assert found["median_s"] >= least_s
    assert (out / "rehearsal.png").stat().st_size > 0
    assert children() <= before
    assert not Path("/sys/class/net/wan0").exists()
