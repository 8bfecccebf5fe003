"""Execution traces written by the real Chakra package and read by the engine."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata
from chakra.src.third_party.utils.protolib import encodeMessage

METADATA = GlobalMetadata(version="0.0.4")


def framed(message) -> bytes:
    """A message after its length, as the package writes it."""
    stream = io.BytesIO()
    encodeMessage(stream, message)
    return stream.getvalue()


def written(folder: Path, messages: Sequence[object]) -> Path:
    path = folder / "trace.0.et"
    path.write_bytes(b"".join(framed(message) for message in messages))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("traces")
