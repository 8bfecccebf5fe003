"""Profiles of layers in files, and worlds that name them: read, and refused by line and column."""

import json
import re

import pytest
from profiled import HEADER, SMALL_CSV
from written_worlds import JSON, edited_yaml, read

from des.world.files.profile_files import read_layer_profile
from des.world.files.topology_writer import to_yaml
from des.world.kernel_figures import FITTED_KERNELS

ROW = "h100,dense,4096,1,1,4096,0.010,0.012,0.008"


def profile_in(folder, content, name="p.csv"):
    """A file of a profile."""
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def as_json(**shared):
    """The small profile as JSON."""
    header, *rows = [line.split(",") for line in SMALL_CSV.splitlines()[1:]]
    points = [dict(zip(header, row, strict=True)) for row in rows]
    typed = [
        {key: cell if key in ("gpu", "layer") else float(cell) for key, cell in one.items()}
        for one in points
    ]
    whole = ("hidden_size", "tensor", "microbatch_size", "sequence")
    typed = [one | {key: int(one[key]) for key in whole} for one in typed]
    return {"source": "measured by hand", "points": typed} | shared


def test_both_forms_give_equal_points(tmp_path):
    table = read_layer_profile(profile_in(tmp_path, SMALL_CSV))
    form = read_layer_profile(profile_in(tmp_path, json.dumps(as_json()), "p.json"))

    assert (table.name, table.gpu, len(table.points)) == ("p.csv", "h100", 4)
    assert table.points == form.points
    assert table.points[1].passes == (0.018, 0.022, 0.015)
    assert not table.includes_exchanges


def test_the_gpu_chooses_the_rows(tmp_path):
    path = profile_in(tmp_path, SMALL_CSV + ROW.replace("h100", "a100_80") + "\n")

    assert len(read_layer_profile(path, gpu="a100_80").points) == 1
    for gpu, wanted in (("v100", "times of GPU v100"), (None, "one GPU, or its name be given")):
        with pytest.raises(ValueError, match=f"p.csv: must hold {wanted}; got those of h100, a100"):
            read_layer_profile(path, gpu=gpu)


def test_exchanges_are_one_word_for_a_gpu(tmp_path):
    content = f"{HEADER},exchanges\n{ROW},included\n"
    assert read_layer_profile(profile_in(tmp_path, content)).includes_exchanges
    assert read_layer_profile(
        profile_in(tmp_path, json.dumps(as_json(exchanges="included")), "p.json")
    ).includes_exchanges
    mixed = content + ROW.replace(",1,1,4096", ",1,2,4096") + ",excluded\n"
    with pytest.raises(ValueError, match=r"exchanges: must be one word for all points of h100"):
        read_layer_profile(profile_in(tmp_path, mixed))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.010", "nan", "line 3: point: forward_s must be positive and finite, got nan"),
        ("0.010", "0", "line 3: point: forward_s must be positive and finite, got 0.0"),
        ("0.012", "-1", "line 3: point: input_gradient_s must be finite and not negative, got -1."),
        (
            "0.008",
            "inf",
            "line 3: point: weight_gradient_s must be finite and not negative, got in",
        ),
        ("0.010", "quick", "line 3: forward_s must be a number of seconds, got 'quick'"),
        ("dense,4096", "dance,4096", "line 3: layer must be one of dense, moe, embedding, head; g"),
        ("dense,4096", "dense,4k", "line 3: hidden_size must be a whole number, got '4k'"),
        ("dense,4096,1", "dense,4096,0", "line 3: point: tensor must be a whole number from 1 to "),
        (",0.008\n", "\n", "line 3: must have 9 fields, one per column"),
        ("hidden_size", "hiden_size", "line 3: hiden_size: unknown column; did you mean 'hidden_s"),
        ("forward_s,", "forwards,", "line 3: forwards: unknown column; did you mean 'forward_s'?"),
        (
            "h100,dense,4096,1,2",
            "h100,dense,4096,1,1",
            "profile p.csv: every point must be given o",
        ),
        (SMALL_CSV, "gpu,layer\n", "must hold at least one point, got none"),
        (SMALL_CSV, f"{HEADER},gpu\n", "columns must be named once, got gpu,layer"),
        (",weight_gradient_s", "", "line 3: must have 8 fields, one per column"),
    ],
)
def test_bad_tables_are_refused_by_line_and_column(tmp_path, old, new, message):
    assert old in SMALL_CSV
    path = profile_in(tmp_path, SMALL_CSV.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_layer_profile(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must be a mapping with a list of points"),
        ('{"points": [], "note": 1}', "note: unknown key"),
        ('{"points": [3]}', "points[0]: must be a mapping, got 3"),
        ('{"points": [{"layer": "dense"}]}', "points[0]: gpu must be given, got none"),
        ('{"gpu": 7, "points": [{}]}', "points[0]: gpu must be text, got 7"),
        ('{"gpu": "a", "points": [{"layer": "head"}]}', "points[0]: hidden_size must be given"),
        (
            '{"gpu": "a", "points": [{"layer": "head", "hidden_size": true}]}',
            "points[0]: hidden_size must be a whole number, got True",
        ),
    ],
)
def test_bad_json_is_refused_by_its_place(tmp_path, content, message):
    path = profile_in(tmp_path, content, "p.json")
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_layer_profile(path)


def test_worlds_of_both_forms_name_profiles_of_their_folder(tmp_path):
    profile_in(tmp_path, SMALL_CSV)
    plain = {key: value for key, value in JSON.items() if key != "attainable_fraction"}
    keys = {"gpu": ["h100", "a100_80", "h100"], "profile": ["p.csv", None, "p.csv"]}
    keys |= {"extrapolate": [False, False, True], "layer_times": ["profile", "shapes", "profile"]}
    first, second, third = read(tmp_path, plain | keys, ".json").domains

    assert first.profile == read_layer_profile(tmp_path / "p.csv", gpu="h100")
    assert (first.kernels, first.attainable_fraction) == (FITTED_KERNELS, 1.0)
    assert first.layer_times == "profile p.csv of h100"
    assert second.profile is None
    assert third.profile.extrapolates
    lines = "num_gpus: 8\n      gpu: h100\n      profile: p.csv"
    assert read(tmp_path, edited_yaml("num_gpus: 8", lines), ".yaml").domains[0].profile == (
        first.profile
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("layer_times: profile", "domain East: profile must name a file with layer_times profile"),
        (
            "layer_times: shapes\n      profile: p.csv",
            "profile must be left out with layer_times s",
        ),
        (
            "extrapolate: true",
            "domain East: extrapolate must be left out with layer_times fraction",
        ),
        ("profile: p.csv", "p.csv: must hold times of GPU east_west_120; got those of h100"),
        ("profile: q.csv", "q.csv: cannot be read"),
    ],
)
def test_bad_keys_of_profiles_are_named(tmp_path, lines, message):
    profile_in(tmp_path, SMALL_CSV)
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, edited_yaml("num_gpus: 8", f"num_gpus: 8\n      {lines}"), ".yaml")


def test_the_name_of_the_gpu_in_the_file_may_be_another(tmp_path):
    profile_in(tmp_path, SMALL_CSV)
    lines = "num_gpus: 8\n      profile: p.csv\n      profile_gpu: h100"
    world = read(tmp_path, edited_yaml("num_gpus: 8", lines), ".yaml")

    assert world.domains[0].profile.gpu == "h100"
    with pytest.raises(ValueError, match=r"^domain East: profile must be left out of a world that"):
        to_yaml(world)
