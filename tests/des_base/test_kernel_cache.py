"""Cache of compiled code that several processes write, and whose files may be damaged."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config

from des.base import kernel_cache
from des.base.kernel_cache import SealedFiles

pytestmark = pytest.mark.attack
KEYS = ("int64", "float64", "record")


def files(folder: Path, stamp: object = (1.0, 2)) -> SealedFiles:
    """The files of a function as one process sees them."""
    return SealedFiles(cache_path=str(folder), filename_base="m.f-1.py311", source_stamp=stamp)


@given(
    writes=st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 3)), min_size=1, max_size=12),
    data=st.data(),
)
def test_code_of_one_signature_is_never_that_of_another(tmp_path_factory, writes, data):
    """Processes that have read an index before others wrote theirs: any index may come back."""
    folder = tmp_path_factory.mktemp("cache")
    index = folder / "m.f-1.py311.nbi"
    seen = [None]
    for key, before in writes:
        old = seen[before % len(seen)]
        index.unlink(missing_ok=True)
        if old is not None:
            index.write_bytes(old)
        files(folder).save(key, f"code of {key}")
        seen.append(index.read_bytes())
    index.write_bytes(data.draw(st.sampled_from(seen[1:])))

    last = writes[-1][0]
    for key in KEYS:
        assert files(folder).load(key) in (None, f"code of {key}")
    index.write_bytes(seen[-1])
    assert files(folder).load(last) == f"code of {last}"


@given(data=st.data())
def test_damaged_files_are_as_if_not_there(tmp_path_factory, data):
    """Cut, changed or replaced, index or entry; saved again, they are read again."""
    folder = tmp_path_factory.mktemp("cache")
    for key in KEYS:
        files(folder).save(key, f"code of {key}")
    by_content = sorted(folder.iterdir(), key=lambda path: (path.suffix, path.read_bytes()))
    path = by_content[data.draw(st.integers(0, len(KEYS)))]
    content = path.read_bytes()
    place = int(data.draw(st.floats(0.0, 0.999)) * len(content))
    damaged = data.draw(
        st.sampled_from([content[:place], content[:place] + b"?" + content[place + 1 :], b"", b"."])
        | st.binary(max_size=100)
    )
    path.write_bytes(damaged)

    for key in KEYS:
        assert files(folder).load(key) in (None, f"code of {key}")
        files(folder).save(key, f"code of {key}")
    for key in KEYS:
        assert files(folder).load(key) == f"code of {key}"


def test_an_index_of_other_sources_is_empty(tmp_path):
    files(tmp_path).save("int64", "old")

    assert files(tmp_path, stamp=(3.0, 4)).load("int64") is None


def doubled(number: float) -> float:
    """A function to compile."""
    return 2.0 * number


def test_one_process_compiles_a_function_while_others_wait_for_it(tmp_path, monkeypatch):
    """Each cache is what a process has of the function."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    compiled = numba.njit(doubled)
    assert compiled(2.0) == 4.0
    ((signature, result),) = compiled.overloads.items()
    one, other = (kernel_cache.SealedCache(doubled) for _ in range(2))
    waits = Event()
    monkeypatch.setattr(kernel_cache.time, "sleep", lambda _: waits.set())

    assert one.load_overload(signature, compiled.targetctx) is None
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(other.load_overload, signature, compiled.targetctx)
        assert waits.wait(60.0)
        one.save_overload(signature, result)
        assert found.result(60.0) is not None
