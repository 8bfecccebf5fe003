"""Gallery of the site: pictures that our own commands draw while the site is built.

``python -m docs.site.gallery --out FOLDER`` draws them all, without the site.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from textwrap import indent

from scenarios.entry.command import main as eastwest

_HEAD = "Gallery\n=======\n\n"
_ABOUT = """Each picture is drawn by the command below it, while these pages are made.
``--figures pdf`` writes it as PDF, for a paper; ``report.html`` in the same folder has it with
zoom. Measurements are small here, to be quick; their pages have those that figures are from.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryPicture:
    """A picture: the command, the file in its folder, and what is seen."""

    title: str
    command: str
    file: str
    seen: str

    @property
    def place(self) -> str:
        """Folder or file that the command writes, of those in ``runs``."""
        return next(word for word in shlex.split(self.command) if word.startswith("runs/"))


def _of(command: str, *pictures: tuple[str, str, str]) -> list[GalleryPicture]:
    """Pictures of one command, by title, file and what is seen."""
    return [
        GalleryPicture(title=title, command=f"eastwest {command}", file=file, seen=seen)
        for title, file, seen in pictures
    ]


PICTURES = (
    *_of(
        "simulate --figures svg --out runs/iteration",
        (
            "One iteration",
            "gantt.svg",
            "Stages over time: forward and backward passes of 32 microbatches, and transfers "
            "between three data centres.",
        ),
        ("Sites and links", "map.svg", "Three sites, and the bandwidth of the links between them."),
        (
            "Busy links",
            "links.svg",
            "Share of the iteration in which each link carries bytes, by sender and receiver.",
        ),
        (
            "Memory over time",
            "memory.svg",
            "Memory of each domain during the iteration, under its capacity.",
        ),
    ),
    *_of(
        "simulate --schedule zb_h1 --figures svg --out runs/zb_h1",
        (
            "Without bubbles",
            "gantt.svg",
            "The same iteration under ZB-H1: weight gradients fill the end of the pipeline.",
        ),
    ),
    *_of(
        "decide --network east_central_west --trainer ideal --figures svg "
        "--report runs/decision/page.html",
        (
            "Families of plans",
            "page_families.svg",
            "Time of a step of the best plan of each family, and the bound.",
        ),
    ),
    *_of(
        "run --epochs 6 --figures svg --out runs/moving",
        ("A run on moving links", "training_run.svg", "Time of each iteration while links move."),
    ),
    *_of(
        "job-queue --policy fifo,las,srtf --load 4,6 --track 0:99 --figures svg --out runs/queue",
        ("Times of jobs", "jct_cdf.svg", "Share of jobs that have ended by a time, by scheduler."),
        ("Times by load", "jct_by_load.svg", "Mean time of a job, over the load of the cluster."),
        ("GPUs of a queue", "gpu_demand.svg", "GPUs that jobs want, and those that are free."),
        ("Jobs on nodes", "nodes.svg", "Stays of jobs on the first nodes, by scheduler."),
    ),
    *_of(
        "link-shares --mixes 10 --iterations 4 --figures svg --out runs/shares",
        ("Jobs that share links", "share_errors.svg", "Error of job times by shares of links."),
    ),
    *_of(
        "autoscale --policy static,hpa,predictive --figures svg --out runs/fleet",
        ("Sizes of a fleet", "sizes.svg", "Load, and instances under each policy."),
        ("Lives of instances", "instances_hpa.svg", "When each instance started and stopped."),
    ),
    *_of(
        "devices show --simulate dgx-1-v100 --picture runs/server.svg",
        ("A server", "server.svg", "How close GPUs and cards of a DGX-1 are to each other."),
    ),
    *_of(
        "devices compare --simulate dgx-1-v100 --gpus 4 --free 0,2,3,4,5,7 --out runs/rules",
        ("GPUs for a job", "picture.png", "NVLinks, all-reduce time and fragmentation by rule."),
    ),
    *_of(
        "devices estimate --machine a100_dgx --plot runs/times.png",
        ("A collective", "times.png", "Time of an all-reduce by algorithm, and measured."),
    ),
    *_of(
        "curves --out runs/training_curves.svg",
        (
            "Training of placements",
            "training_curves.svg",
            "Excess and entropy over updates, five seeds.",
        ),
    ),
    *_of(
        "fidelity --num-layers 6 --microbatches 2 --samples 4 --transports none --figures svg "
        "--out runs/levels",
        ("Levels of detail", "levels.svg", "Times of the same placements at every level."),
    ),
    *_of(
        "pareto --worlds 1 --num-domains 5 --evaluations 400 --tables all_gpus --figures svg "
        "--out runs/fronts",
        ("Time and cost", "fronts.svg", "Cost of links against time: best known, and methods."),
    ),
    *_of(
        "reproduce diloco --figures svg --out runs/diloco",
        ("Bandwidth of replicas", "picture.svg", "Compute utilisation over bandwidth, by mode."),
    ),
    *_of(
        "reproduce zero_bubble --figures svg --out runs/zero_bubble",
        ("Bubble rates", "picture.svg", "Bubble rates of five schedules, ours and published."),
    ),
    *_of(
        "reproduce blox --figures svg --out runs/blox",
        ("Queues of Blox", "picture.svg", "Mean times of jobs, ours and those of Blox."),
    ),
)
"""Pictures of the gallery; those of one command stand next to each other."""

LONGER = {
    "eastwest compare --out runs/compare": ("static", "dynamic"),
    "eastwest robustness --out runs/robustness": ("robustness", "robustness_jitter"),
    "eastwest train --out runs/training": ("learning_curve", "comparison"),
    "eastwest train scheduling --out runs/scheduling": ("policies",),
    "eastwest train autoscale --summary --out runs/three": ("autoscale_curves",),
    "eastwest sweep --out runs/sweep": ("sweep", "seed_curves"),
    "eastwest autoscale capacity --out runs/capacity": ("capacity",),
    "eastwest calibrate run": ("predicted_versus_reference", "delays"),
    "eastwest reproduce crosspipe, sailor, measured, rivals": ("picture",),
    "eastwest explore": ("what_if", "families", "bubbles"),
    "make bench": ("performance_growth",),
}
"""Pictures of commands that take longer or need a browser, by the command."""


def without_pictures() -> str:
    """Return a page that says where pictures come from."""
    return f"{_HEAD}Pictures are drawn by ``make docs``.\n"


def gallery_page(folder: Path) -> str:
    """Run the commands in a folder, each once, and return the page of their pictures.

    Raises
    ------
    RuntimeError
        If a command does not end with exit code 0, or its picture is not there.
    """
    longer = "".join(f"- ``{command}``: {', '.join(names)}\n" for command, names in LONGER.items())
    others = "Others\n------\n\nDrawn by commands that take longer or need a browser:\n\n"
    return "".join([_HEAD, _ABOUT, *_parts(folder), others, longer])


def _parts(folder: Path) -> Iterator[str]:
    run = set[str]()
    for picture in PICTURES:
        out = folder / Path(picture.place).relative_to("runs")
        if picture.command not in run:
            out.parent.mkdir(parents=True, exist_ok=True)
            words = shlex.split(picture.command.replace(picture.place, shlex.quote(str(out))))
            with redirect_stdout(StringIO()):
                code = eastwest(words[1:])
            if code != 0:
                raise RuntimeError(f"gallery: {picture.command}: exit code {code}")
            run.add(picture.command)
        path = (out.parent if out.suffix else out) / picture.file
        if not path.is_file():
            raise RuntimeError(f"gallery: {picture.command}: wrote no {picture.file}")
        yield _shown(picture, path.relative_to(folder.parent))


def _shown(picture: GalleryPicture, path: Path) -> str:
    line = "-" * len(picture.title)
    image = f".. image:: {path.as_posix()}\n   :alt: {picture.seen}\n"
    command = f".. code-block:: sh\n\n{indent(picture.command, '   ')}\n"
    return f"{picture.title}\n{line}\n\n{picture.seen}\n\n{image}\n{command}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Draw all pictures and write their page beside them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/gallery"), help="folder")
    flags = parser.parse_args(argv)
    flags.out.mkdir(parents=True, exist_ok=True)
    (flags.out / "gallery.rst").write_text(gallery_page(flags.out / "pictures"), "utf-8")
    sys.stdout.write(f"gallery: {flags.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
