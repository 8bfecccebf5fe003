"""Profiles made of tables of timed layers: medians by hand, layers by index, refusals."""

import re

import pytest
from command_output import error_of
from profiled import HEADER

from calibration.commands.main import main
from calibration.measured.layer_tables import medians, read_timed_rows
from des.world.files.profile_files import read_layer_profile

LEAD = "H100 80GB,dense,4096,32,16384,1"
TIMED = f"""\
gpu,layer,hidden_size,num_heads,ffn_size,tensor,microbatch_size,sequence,repeat,\
forward_s,input_gradient_s,weight_gradient_s
{LEAD},1,2048,0,0.010,0.020,0.030
{LEAD},1,2048,1,0.012,0.020,0.030
{LEAD},1,2048,2,0.099,0.020,0.031
{LEAD},2,2048,0,0.008,0.040,0.060
"""
ARCHITECTURE = """\
num_layers: 2
hidden_size: 8
num_heads: 2
num_key_value_heads: 2
ffn_size: 32
vocabulary_size: 100
gated_ffn: false
tied_embeddings: true
"""
INDEXED = """\
model,gpu,mbs,tp,layer,fwd_s,bwd_s,update_s
tiny,V100,1,2,0,0.001,0.002,0.1
tiny,V100,1,2,1,0.010,0.022,0.1
tiny,V100,1,2,2,0.014,0.022,0.1
tiny,V100,1,2,3,0.004,0.006,0.1
other,V100,1,2,0,0.5,0.5,0.1
"""


def made(folder, content, *flags):
    """Path of the profile that the command makes of a table."""
    (folder / "table.csv").write_text(content)
    out = folder / "made" / "profile.csv"
    assert main(["profile", "--runs", str(folder / "table.csv"), *flags, "--out", str(out)]) == 0
    return out


def test_repeats_give_their_median_and_are_reported(tmp_path, capsys):
    out = made(tmp_path, TIMED, "--gpu", "h100", "--source", "one H100")
    first, second = read_layer_profile(out, gpu="h100").points

    assert first.passes == (0.012, 0.020, 0.030)
    assert second.passes == (0.008, 0.040, 0.060)
    assert first.layer.sizes == {"hidden_size": 4096, "num_heads": 32, "ffn_size": 16384}
    lines = out.read_text().splitlines()
    assert lines[:2] == ["# source: one H100", "# 2 points from 4 rows of table.csv"]
    assert lines[2] == TIMED.partition("\n")[0].replace("repeat,", "")
    printed = capsys.readouterr().out
    assert "h100, dense: 2 points, rows of each: 1 to 3" in printed
    assert "implausible: on h100, dense, hidden_size 4096" in printed
    assert "tensor 1, microbatch_size 2, sequence 2048 than at tensor 1, micro" in printed


def test_quartiles_are_apart_in_parts_of_the_median(tmp_path):
    (tmp_path / "table.csv").write_text(TIMED)
    spread = medians(read_timed_rows(tmp_path / "table.csv"))[0].spreads

    assert spread == pytest.approx(((0.0555 - 0.011) / 0.012, 0.0, 0.0005 / 0.030))


def test_layers_by_index_become_kinds_and_gradients_are_divided_by_flops(tmp_path):
    """Two layers count as repeats; attention of 4 tokens takes 128 FLOPs a token, weights 1536."""
    (tmp_path / "tiny.yaml").write_text(ARCHITECTURE)
    flags = ["--table-model", "tiny", "--model", str(tmp_path / "tiny.yaml"), "--sequence", "4"]
    out = made(tmp_path, INDEXED, *flags, "--exchanges", "included", "--gpu", "V100=v100_32")
    profile = read_layer_profile(out, gpu="v100_32")
    times = {one.layer.kind: one.passes for one in profile.points}

    assert profile.includes_exchanges
    assert times["embedding"] == (0.001, 0.0, 0.002)
    assert times["head"] == (0.004, 0.003, 0.003)
    weights, attention = 2 * 12 * 8**2, 4 * 4 * 8
    assert times["dense"] == pytest.approx(
        (
            0.012,
            0.022 * (weights + 2 * attention) / (2 * weights + 2 * attention),
            0.022 * weights / (2 * weights + 2 * attention),
        )
    )
    dense = profile.points[1].layer.sizes
    assert dense["ffn_matrices"] == 2
    assert [one.place for one in profile.points] == [(2, 1, 4)] * 3


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        (TIMED.replace("0.010", "nan"), (), "line 2: point: forward_s must be positive and finite"),
        (
            TIMED.replace("0.020", "-1"),
            (),
            "line 2: point: input_gradient_s must be finite and not",
        ),
        (f"{HEADER}\n", (), "a table must hold at least one timed layer, got none"),
        (
            f"{TIMED}{LEAD.replace('H100', 'A100')},1,2048,0,1,1,1\n",
            ("--gpu", "h100"),
            "gpu must be OLD=NEW for times of several GPUs, H100 80GB, A100 80GB; got h100",
        ),
        (TIMED, ("--gpu", "H200=h200"), "gpu must be OLD=NEW for some of H100 80GB; got H200=h200"),
        (TIMED.replace("repeat", "run"), (), "line 2: run: unknown column"),
        (INDEXED, (), "--model and --sequence must be given for "),
        (
            INDEXED,
            ("--model", "llama2_7b", "--sequence", "4"),
            "table_model must be one of tiny, other; got None",
        ),
        (
            INDEXED,
            ("--model", "llama2_7b", "--sequence", "4", "--table-model", "tiny"),
            "tiny: must have layers 0 to 33, as llama2_7b has with its embedding and head; got up",
        ),
        (
            INDEXED.replace("0.014", "inf"),
            ("--model", "llama2_7b", "--sequence", "4"),
            "line 4: fwd_s",
        ),
        (
            f"{HEADER},exchanges\nv,head,8,1,1,4,1,1,1,included\nv,head,8,2,1,4,1,1,1,\n",
            (),
            "exchanges must be one word for all rows of v, got both",
        ),
    ],
)
def test_bad_tables_are_errors_of_one_line(tmp_path, capsys, content, flags, message):
    (tmp_path / "table.csv").write_text(content)
    table, out = str(tmp_path / "table.csv"), str(tmp_path / "out.csv")

    said = error_of(main, ["profile", "--runs", table, *flags, "--out", out], capsys)
    assert re.search(re.escape(message), said)
    assert not (tmp_path / "out.csv").exists()


def test_a_table_has_to_be_named(capsys):
    assert main(["profile"]) == 2
    assert "--runs must name at least one table of measured runs" in capsys.readouterr().err
