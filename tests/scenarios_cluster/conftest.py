"""Folder and token that tests of a scheduler under attack share."""

import pytest
from cluster_in_process import TOKEN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def token(folder):
    path = folder / "token"
    path.write_text(TOKEN, "utf-8")
    path.chmod(0o600)
    return path
