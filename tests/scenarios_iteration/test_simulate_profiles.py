"""Simulated iterations with layer times from a profile: equal to shapes at its points, refused."""

import pytest
from command_output import error_of
from profiled import SMALL_CSV, world_on_h100, write_profile
from simulated_files import SMALL, figures

from des import read_topology
from scenarios.iteration.command import main


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """A world with times from shapes, and a profile of these times."""
    folder = tmp_path_factory.mktemp("worlds")
    world_on_h100(folder / "world.yaml", "layer_times: shapes")
    write_profile(folder / "p.csv", read_topology(folder / "world.yaml").domains[0], "llama2_7b")
    return folder


def makespan(folder, worlds, *flags):
    """Iteration time on the world."""
    return figures(folder, *SMALL, "--network", str(worlds / "world.yaml"), *flags)["makespan_s"]


def test_a_profile_of_the_times_of_shapes_keeps_the_iteration(tmp_path, worlds, capsys):
    shaped_s = makespan(tmp_path, worlds)
    profiled = ("--profile", str(worlds / "p.csv"))

    assert makespan(tmp_path, worlds, *profiled) == pytest.approx(shaped_s, rel=1e-12)
    assert "layer times from profile p.csv of h100" in " ".join(capsys.readouterr().out.split())
    named = ("--profile", f"East={worlds / 'p.csv'},West={worlds / 'p.csv'}")
    assert makespan(tmp_path, worlds, *named) == pytest.approx(shaped_s, rel=1e-12)
    shown = " ".join(capsys.readouterr().out.split())
    assert "East, West: profile p.csv of h100; Central: shapes of matrices" in shown
    two = ("--microbatch-size", "2")
    assert makespan(tmp_path, worlds, *two, *profiled) == pytest.approx(
        makespan(tmp_path, worlds, *two), rel=1e-12
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--microbatch-size", "4"),
            "domain East: profile small.csv: tensor 1, microbatch_size 4, sequence 4096 must lie "
            "between the points of layer dense, hidden_size 4096, ",
        ),
        (("--model", "llama2_13b"), "the nearest is dense, hidden_size 4096"),
        (("--parallelism", "8x1x1"), "the nearest of which is tensor 1, microbatch_size 1"),
        (("--profile-gpu", "v100"), "small.csv: must hold times of GPU v100; got those of h100"),
        (("--profile", "Nowhere=p.csv"), "profile must be one file, or NAME=FILE once for domains"),
        (("--profile", "none.csv"), "domain East: profile: none.csv: cannot be read"),
    ],
)
def test_what_a_profile_lacks_is_an_error_of_one_line(tmp_path, worlds, capsys, flags, message):
    (tmp_path / "small.csv").write_text(SMALL_CSV)
    given = [*SMALL, "--network", str(worlds / "world.yaml")]
    given += ["--profile", str(tmp_path / "small.csv"), *flags, "--out", str(tmp_path / "out")]

    assert message in error_of(main, given, capsys)


def test_outside_a_profile_times_may_be_scaled(tmp_path, worlds):
    """Twice the microbatch takes a little less than twice the time of the nearest point."""
    profiled = ("--profile", str(worlds / "p.csv"), "--placement", "East*32")
    four = ("--microbatch-size", "4", "--extrapolate")
    shaped_s = makespan(tmp_path, worlds, "--placement", "East*32", "--microbatch-size", "4")

    assert makespan(tmp_path, worlds, *profiled, *four) == pytest.approx(shaped_s, rel=1e-12)


def test_flags_of_profiles_need_one(tmp_path, capsys):
    assert main(["--extrapolate", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "error: extrapolate needs a profile, got none\n"


def test_the_shipped_world_names_no_gpu_of_a_profile(tmp_path, capsys):
    """Its GPU is no product: the name in the file has to be given."""
    (tmp_path / "p.csv").write_text(SMALL_CSV)
    flags = [*SMALL, "--profile", str(tmp_path / "p.csv"), "--out", str(tmp_path / "out")]

    assert main(flags) == 2
    assert "must hold times of GPU east_west_120; got those of h100" in capsys.readouterr().err
    assert main([*flags, "--profile-gpu", "h100", "--sequence-length", "4096"]) == 0
