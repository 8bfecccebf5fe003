"""Small files that ask for much: memory, time, depth, or a very long message."""

import json
import pickle
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mutations import archived, resealed

from agents.ppo.checkpoint import pack_content, unpack_content

Bomb = Callable[[bytes], bytes]
"""Makes a bad file, of the valid one where it needs that."""


def _laughs(sample: bytes) -> bytes:
    """Aliases of aliases: 10 to the 9th values in some hundred characters."""
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return "\n".join([*lines, "dynamics: *a9", ""]).encode()


def _merges(sample: bytes) -> bytes:
    lines = ["m0: &m0 {a: 1}"]
    lines += [f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}]}}" for i in range(1, 28)]
    return "\n".join(lines).encode()


def _keys_under(name: str) -> Bomb:
    return lambda sample: (
        sample + f"\n{name}:\n".encode() + b"".join(b"  k%d: 1\n" % i for i in range(20_000))
    )


YAML_BOMBS: dict[str, Bomb] = {
    "aliases of aliases": _laughs,
    "aliases under dynamics": lambda sample: sample + b"\n" + _laughs(sample),
    "merges of merges": _merges,
    "an alias of itself": lambda _: b"dynamics: &a [*a]\n",
    "lists in lists": lambda _: b"[" * 200_000,
    "mappings in mappings": lambda _: b"{a: " * 100_000,
    "deep by lines": lambda _: b"".join(b" " * i + b"a:\n" for i in range(1500)),
    "20,000 keys": _keys_under("dynamics"),
    "20,000 keys at the top": lambda _: b"".join(b"k%d: 1\n" % i for i in range(20_000)),
    "a key of 400 kB": lambda sample: sample + b"\n" + b"k" * 400_000 + b": 1\n",
    "a quoted key of 400 kB": lambda sample: sample + b'\n"' + b"k" * 400_000 + b'": 1\n',
    "a value of 400 kB": lambda _: b"topology: " + b"v" * 400_000,
    "digits": lambda _: b"steps: " + b"9" * 100_000,
    "sixties": lambda _: b"steps: 1" + b":59" * 200_000,
    "a million short values": lambda _: b"[" + b"1," * 1_000_000 + b"1]",
    "question marks": lambda _: b"? " * 20_000,
    "tags": lambda _: b"a: !!bool maybe\nb: !!timestamp x\n",
    "a key that is a list": lambda _: b"? [1, 2]\n: 3\n",
    "many documents": lambda _: b"--- a\n" * 50_000,
}
JSON_BOMBS: dict[str, Bomb] = {
    "lists in lists": lambda _: b"[" * 200_000,
    "objects in objects": lambda _: b'{"a":' * 100_000,
    "a million objects": lambda _: b"[" + b"{}," * 1_000_000 + b"{}]",
    "two million numbers": lambda _: b"[" + b"1," * 2_000_000 + b"1]",
    "the same key 20,000 times": lambda _: b"{" + b'"a":1,' * 20_000 + b'"a":1}',
    "a key of 400 kB": lambda _: b'{"' + b"k" * 400_000 + b'": 1}',
    "20,000 keys": lambda _: b"{" + b",".join(b'"k%d": {"a": 1}' % i for i in range(20_000)) + b"}",
    "digits": lambda _: b'{"config": ' + b"9" * 100_000 + b"}",
    "an exponent": lambda _: b'{"config": 1e999999999}',
    "half of a pair": lambda _: b'{"config": "\\ud800"}',
}
CSV_BOMBS: dict[str, Bomb] = {
    "100,000 columns": lambda _: b",".join(b"c%d" % i for i in range(100_000)) + b"\n",
    "a cell of 1 MB": lambda sample: sample.splitlines(keepends=True)[0] + b"a" * 1_000_000,
    "an open quote": lambda sample: sample + b'"' + b"a,\n" * 300_000,
    "200,000 empty lines": lambda sample: sample + b"\n" * 200_000,
    "its rows 20,000 times": lambda sample: sample + sample.splitlines(keepends=True)[-1] * 20_000,
    "no bytes": lambda _: b"",
    "zeros": lambda _: b"\x00" * 100_000,
}
TEXT_BOMBS: dict[str, Bomb] = {
    "hosts without end": lambda _: (
        b"SwitchName=s Nodes=n[0-999999999]\nBlockName=b Nodes=n[0-99999]m[0-99999]\n"
    ),
    "a line of 1 MB": lambda _: b"SwitchName=" + b"s" * 1_000_000,
    "100,000 lines": lambda sample: sample + b"GPU0\t X \n" * 100_000,
    "brackets": lambda _: b"SwitchName=s Nodes=" + b"n[" * 50_000,
}
TRACE_BOMBS: dict[str, Bomb] = {
    "a length of 4 GB": lambda sample: sample + b"\xff\xff\xff\xff\x0f",
    "100,000 empty nodes": lambda sample: sample + b"\x00" * 100_000,
    "a number without end": lambda sample: sample + b"\x05\x08" + b"\xff" * 4,
    "groups in groups": lambda sample: sample + b"\xfe\xff\x01" + b"\x0b" * 32_766,
}


def _saved(payload: object) -> bytes:
    return pack_content({"payload": payload}, FORM)


def _wide(sample: bytes) -> bytes:
    """A valid file whose networks would have a million units."""
    metadata, payload = unpack_content(sample)
    assert isinstance(payload, dict)
    for part in (payload, payload.get("placement", {})):
        for name in ("width", "edge_width", "num_rounds", "hidden_size"):
            if name in part.get("architecture", {}):
                part["architecture"][name] = 4096 if name == "hidden_size" else 1_000_000
    return pack_content(payload, metadata)


def _resealed(change: Callable[[dict[str, Any]], object]) -> Bomb:
    return lambda sample: resealed(sample, change)


def _every_array(entry: dict[str, Any]) -> Callable[[dict[str, Any]], object]:
    return lambda header: [header[name].update(entry) for name in header if name != "__metadata__"]


FORM = {"format": "eastwest-checkpoint", "version": "3"}
CHECKPOINT_BOMBS: dict[str, Bomb] = {
    "arrays of 8 exabytes": _resealed(_every_array({"shape": [2**60]})),
    "arrays of no rows, 10 billion columns": _resealed(_every_array({"shape": [0, 10**10]})),
    "arrays of a billion dimensions": _resealed(_every_array({"shape": [1] * 100_000})),
    "arrays that share bytes": _resealed(_every_array({"data_offsets": [0, 4]})),
    "sizes that are no numbers": _resealed(_every_array({"shape": ["9" * 5000]})),
    "a far place": _resealed(_every_array({"data_offsets": [2**62, 2**63]})),
    "a kind of another library": _resealed(_every_array({"dtype": "F8_E4M3"})),
    "a hundred thousand arrays": _resealed(
        lambda header: header.update(
            {
                str(one): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
                for one in range(10**5)
            }
        )
    ),
    "lists in lists": lambda _: _saved(_nested(300)),
    "lists in lists, deep": _resealed(
        lambda header: header["__metadata__"].update(content="[" * 200_000)
    ),
    "one array 10,000 times": _resealed(
        lambda header: header["__metadata__"].update(
            content=json.dumps([{"array": next(iter(header))}] * 10_000)
        )
    ),
    "networks of a million units": _wide,
    "a header of 8 exabytes": lambda sample: (2**62).to_bytes(8, "little") + sample[8:],
    "no header": lambda sample: bytes(8) + sample[8:],
    "a call": lambda _: pickle.dumps(print),
    "a file of torch": lambda _: archived({"archive/version": b"3"}),
    "the file twice": lambda sample: sample + sample,
}


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def _sql(*commands: str) -> Bomb:
    def made(sample: bytes) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.sqlite"
            path.write_bytes(sample)
            connection = sqlite3.connect(path)
            for command in commands:
                connection.execute(command)
            connection.commit()
            connection.close()
            return path.read_bytes()

    return made


_ANEW = (
    "CREATE TABLE others AS SELECT * FROM runs",
    "DROP TABLE runs",
    "ALTER TABLE others RENAME TO runs",
)
SQLITE_BOMBS: dict[str, Bomb] = {
    "a key that is none": _sql("UPDATE runs SET key = NULL"),
    "numbers for texts": _sql(*_ANEW, "UPDATE runs SET key = 1, measurement = 2, seal = 4"),
    "nothing at all": _sql(*_ANEW, "UPDATE runs SET key = NULL, measurement = NULL, seal = NULL"),
    "bytes for texts": _sql(*_ANEW, "UPDATE runs SET seal = x'ff', key = x'00'"),
    "a column less": _sql("ALTER TABLE runs DROP COLUMN meta"),
    "no table": _sql("DROP TABLE runs"),
    "no text": _sql("UPDATE runs SET measurement = CAST(x'ff' AS TEXT)"),
    "a view without end": _sql(
        "DROP TABLE runs",
        "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS key, 'a' AS case_digest, 'b' AS backend, NULL AS aggregation, '1' AS version, "
        "0.0 AS created_s, '{}' AS measurement, '{}' AS meta, 'x' AS seal FROM n",
    ),
    "a cell of 900 MB": _sql(*_ANEW, "DELETE FROM runs", "DROP TABLE runs",
        "CREATE VIEW runs AS SELECT hex(zeroblob(450000000)) AS key, 'a' AS case_digest, 'b' AS "
        "backend, NULL AS aggregation, '1' AS version, 0.0 AS created_s, '{}' AS measurement, "
        "'{}' AS meta, 'x' AS seal"),
}  # fmt: skip

BOMBS: dict[str, dict[str, Bomb]] = {
    "yaml": YAML_BOMBS,
    "yml": YAML_BOMBS,
    "json": JSON_BOMBS,
    "csv": CSV_BOMBS,
    "txt": TEXT_BOMBS,
    "conf": TEXT_BOMBS,
    "et": TRACE_BOMBS,
    "safetensors": CHECKPOINT_BOMBS,
    "sqlite": SQLITE_BOMBS,
}
