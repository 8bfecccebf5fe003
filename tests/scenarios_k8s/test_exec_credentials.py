"""Credentials of programs and files: used until they end or are refused; errors say why."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from api_server_cases import ApiCluster, api_server

from scenarios.k8s.api_server import ApiError, ApiServer
from scenarios.k8s.kubeconfig import read_kubeconfig

VERSION = "client.authentication.k8s.io/v1"
PROGRAM = """#!{python}
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
count = len(list(folder.glob("run-*")))
(folder / f"run-{{count}}").write_text(os.environ["KUBERNETES_EXEC_INFO"])
print((folder / "answer").read_text().replace("COUNT", str(count) + os.environ["MARK"]))
"""


def kubeconfig(folder: Path, url: str, **user: object) -> Path:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }
    (folder / "config").write_text(yaml.safe_dump(config), "utf-8")
    return folder / "config"


def section(folder: Path, status: dict, **more: object) -> dict:
    """Section ``exec`` for a program that prints a status; ``COUNT`` in it becomes its run's."""
    path = folder / "login"
    path.write_text(PROGRAM.format(python=sys.executable), "utf-8")
    path.chmod(0o755)
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    (folder / "answer").write_text(json.dumps(answer), "utf-8")
    mark = [{"name": "MARK", "value": "!"}]
    return {"apiVersion": VERSION, "command": "./login", "args": ["get"], "env": mark, **more}


def runs(folder: Path) -> int:
    return len(list(folder.glob("run-*")))


@pytest.fixture
def cluster():
    return ApiCluster()


def test_the_token_of_a_program_is_used_until_it_is_refused(cluster, tmp_path):
    cluster.tokens = {"t-0!"}
    program = section(tmp_path, {"token": "t-COUNT"}, provideClusterInfo=True)
    with api_server(cluster) as url:
        api = ApiServer(access=read_kubeconfig(kubeconfig(tmp_path, url, exec=program)))
        api.get("/api/v1/nodes", {})
        api.get("/api/v1/nodes", {})
        assert runs(tmp_path) == 1
        cluster.tokens = {"t-1!"}
        with pytest.raises(ApiError, match="401 Unauthorized"):
            api.get("/api/v1/nodes", {})
        api.get("/api/v1/nodes", {})

    assert runs(tmp_path) == 2
    told = json.loads((tmp_path / "run-0").read_text("utf-8"))
    spec = {"interactive": False, "cluster": {"server": url}}
    assert told == {"apiVersion": VERSION, "kind": "ExecCredential", "spec": spec}


@pytest.mark.parametrize(("in_s", "expected"), [(3600.0, 1), (-1.0, 3)])
def test_a_token_that_ends_is_asked_for_again(cluster, tmp_path, in_s, expected):
    until = datetime.fromtimestamp(time.time() + in_s, UTC).isoformat()
    program = section(tmp_path, {"token": "t", "expirationTimestamp": until})
    with api_server(cluster) as url:
        api = ApiServer(access=read_kubeconfig(kubeconfig(tmp_path, url, exec=program)))
        api.get("/api/v1/nodes", {})
        api.get("/api/v1/nodes", {})

    assert runs(tmp_path) == expected


def test_a_token_file_is_read_for_each_request(cluster, tmp_path):
    (tmp_path / "token").write_text("one\n", "utf-8")
    cluster.tokens = {"one"}
    with api_server(cluster) as url:
        access = read_kubeconfig(kubeconfig(tmp_path, url, tokenFile="token"))
        api = ApiServer(access=access)
        api.get("/api/v1/nodes", {})
        cluster.tokens = {"two"}
        (tmp_path / "token").write_text("two\n", "utf-8")
        api.get("/api/v1/nodes", {})
        (tmp_path / "token").unlink()
        assert "token: cannot be read" in api.post("/api/v1/x", {})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "apiVersion must be one of"),
        ({"command": "./none", "installHint": "get it"}, "'./none' cannot be run; get it"),
        ({"interactiveMode": "Always"}, "interactiveMode must be Never or IfAvailable"),
        ({"args": "get"}, "args must be a list of texts"),
        ({"env": ["A=b"]}, "env must be a list of names and values"),
    ],
)
def test_wrong_sections_are_refused(tmp_path, change, match):
    program = section(tmp_path, {"token": "t"}, **change)

    with pytest.raises(ValueError, match=match):
        read_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:1", exec=program))


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        ("no JSON", "login: body: not readable as JSON"),
        ('{"apiVersion": "v1"}', "apiVersion must be client.authentication.k8s.io/v1"),
        ({}, "status must have a token"),
        ({"clientKeyData": "k", "token": "t"}, "must be given together"),
        ({"token": "t", "expirationTimestamp": "soon"}, "expirationTimestamp must be a time"),
        ({"token": 1}, "token must be text"),
    ],
)
def test_programs_that_print_something_else_are_refused(tmp_path, answer, match):
    """At the start, with one line; while the extender runs they are errors of the API server."""
    program = section(tmp_path, answer if isinstance(answer, dict) else {})
    if isinstance(answer, str):
        (tmp_path / "answer").write_text(answer, "utf-8")
    access = read_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:1", exec=program))

    with pytest.raises(ValueError, match=match):
        ApiServer(access=access)


def test_a_program_that_fails_says_why(tmp_path):
    program = section(tmp_path, {}) | {"env": []}
    access = read_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:1", exec=program))

    with pytest.raises(ValueError, match=r"(?s)login: ended with 1: .*KeyError: 'MARK'"):
        ApiServer(access=access)
