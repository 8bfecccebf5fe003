"""Read bad files one after the other, and say of each that is not refused as it should be.

``python fuzzed.py SEED COUNT KEPT [--bombs] [READER ...]`` reads COUNT mutations of each reader's
sample, and all bombs of its format if it has to. It prints a line of JSON for each fault and one of
numbers for each reader; files of faults are kept in the folder KEPT.
"""

import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

if __name__ == "__main__":  # pytest has these on the path
    sys.path[1:1] = [str(Path(__file__).parents[level]) for level in (1, 2)]

from bombs import BOMBS
from mutations import mutated
from readers import READERS, Reader

LONGEST_S = 5.0
"""CPU time of a file; after twice that, reading is cut short. [s]"""

MOST_KIB = 200 * 1024
"""Memory of a file above what the process had at its start. [KiB]"""

STARTS_KIB: list[int] = []
"""Memory of this process before the files of each reader. [KiB]"""

_ROOM_BYTES = 2**30
"""After which the process gets no more, so that a fault does no harm to the machine."""


class TooLongError(BaseException):
    """Reading takes so long that it is cut short."""


def stop(number: int, frame: FrameType | None) -> None:
    """Cut reading short, at the signal of a timer."""
    raise TooLongError


def contents(
    reader: Reader, seed: int, count: int, *, with_bombs: bool
) -> Iterator[tuple[str, bytes]]:
    """Bombs, then mutations, each with its name."""
    sample = reader.sample()
    for name, bomb in BOMBS.get(reader.kind, {}).items() if with_bombs else ():
        yield name, bomb(sample)
    for number in range(count):
        rng = random.Random(f"{reader.name} {seed} {number}")
        yield f"mutation {number}", mutated(sample, rng, reader.kind)


def fault_of(
    reader: Reader, content: bytes, folder: Path, longest_s: float = LONGEST_S
) -> str | None:
    """Read a file; return what is wrong with how that went, None if nothing."""
    path = folder / f"file{reader.suffix}"
    path.write_bytes(content)
    _forget_peak()
    before_s = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * longest_s)
    try:
        reader.read(path)
    except reader.refuses as error:
        if not str(error):
            return "it says nothing"
    except (Exception, TooLongError) as error:  # noqa: BLE001 - found, and reported
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:300]} ({last.filename}:{last.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        for one in folder.iterdir():
            one.unlink()
    took_s = time.process_time() - before_s
    if took_s > longest_s:
        return f"it took {took_s:.1f} s"
    grown_kib = _peak_kib() - STARTS_KIB[-1]
    return f"it took {grown_kib // 1024} MiB" if grown_kib > MOST_KIB else None


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def begin() -> None:
    """Take the memory of the process as it is now for that without a file."""
    _forget_peak()
    STARTS_KIB.append(_peak_kib())


def read_all(
    reader: Reader, seed: int, count: int, kept: Path, *, with_bombs: bool = True
) -> Iterator[dict[str, object]]:
    """Read all bad files of one reader; yields faults, then the numbers of files and bombs."""
    num_read = 0
    num_bombs = len(BOMBS.get(reader.kind, {})) if with_bombs else 0
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for _ in range(2):  # the first time it imports what it needs
            begin()
            fault = fault_of(reader, reader.sample(), folder)
        assert fault is None, fault
        begin()
        for what, content in contents(reader, seed, count, with_bombs=with_bombs):
            num_read += 1
            fault = fault_of(reader, content, folder)
            if fault is not None:
                place = kept / f"{reader.name}-{seed}-{what}{reader.suffix}".replace(" ", "_")
                place.write_bytes(content)
                yield {"reader": reader.name, "file": what, "fault": fault}
    yield {"reader": reader.name, "read": num_read, "bombs": num_bombs}


def main(words: Sequence[str], seed: int, count: int, kept: Path) -> None:
    """Read bad files of readers, of all of them where none is named."""
    names = [word for word in words if word != "--bombs"]
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, stop)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM_BYTES, resource.RLIM_INFINITY))
    for name in names or READERS:
        found = read_all(READERS[name], seed, count, kept, with_bombs="--bombs" in words)
        for line in found:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[4:], int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
