"""Small runs of the commands of calibration, and what they leave."""

from pathlib import Path

from calibration.commands.main import main

SMALL = ("--num-layers", "8", "--microbatches", "4,8", "--workers", "1")
"""Little to simulate, and one process for it."""


def fit(*flags, out="fit", samples=12):
    return main(["run", *SMALL, "--samples", str(samples), "--out", out, *flags])


def content_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def check(*flags, samples=6, store="none"):
    return main(["check", *SMALL, "--samples", str(samples), "--store", store, *flags])
