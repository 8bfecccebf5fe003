"""State in a Redis of its own, where the redis package and program are installed."""

import shutil
import subprocess

import pytest

from scenarios.cluster.machine import free_ports
from scenarios.cluster.scheduler_server import open_store

redis = pytest.importorskip("redis", reason="needs the extra cluster-redis")


@pytest.fixture
def address(tmp_path):
    """Address of a Redis that holds a key of another program."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs the program redis-server")
    (port,) = free_ports("127.0.0.1", 1)
    words = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "Ready to accept connections" in line:
                break
        with redis.Redis(port=port) as other:
            other.set("theirs", "1")
            yield f"redis://127.0.0.1:{port}/0"
            assert other.get("theirs") == b"1"
        process.terminate()
        process.stdout.read()


def test_the_scheduler_that_comes_last_owns_the_state(address):
    first = open_store(f"{address}#main")
    first.write({"meta": "1", "job/1": "a"})
    other = open_store(f"{address}#other")
    assert other.read() == {}
    later = open_store(f"{address}#main")
    assert later.read() == {"meta": "1", "job/1": "a"}
    later.write({"job/1": "b"})

    with pytest.raises(OSError, match="another scheduler has taken this state up"):
        first.write({"job/1": "c"})
    assert later.read()["job/1"] == "b"
    for store in (first, other, later):
        store.close()


def test_a_name_must_be_given_and_the_server_must_answer():
    with pytest.raises(ValueError, match="must be redis://HOST:PORT/DB#NAME"):
        open_store("redis://127.0.0.1:1/0")
    with pytest.raises(ValueError, match="#main: cannot be used"):
        open_store("redis://127.0.0.1:1/0#main")
