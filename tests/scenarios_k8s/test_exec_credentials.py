"""Credentials of programs, files and pods: used until they end or are refused."""

import base64
import json
import ssl
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from api_server_cases import ApiCluster, api_of, api_server, kubeconfig
from certificates import certificate_in
from kubernetes.config import incluster_config

from scenarios.k8s.api_server import ApiError, reach

VERSION = "client.authentication.k8s.io/v1"
PROGRAM = """#!{python}
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
count = len(list(folder.glob("run-*")))
(folder / f"run-{{count}}").write_text(os.environ["KUBERNETES_EXEC_INFO"])
print((folder / "answer").read_text().replace("COUNT", str(count) + os.environ["MARK"]))
"""


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
        api = api_of(tmp_path, url, exec=program)
        api.get("/api/v1/nodes", {})
        api.get("/api/v1/nodes", {})
        assert runs(tmp_path) == 1
        cluster.tokens = {"t-1!"}
        api.get("/api/v1/nodes", {})
        assert runs(tmp_path) == 2
        cluster.tokens = {"t-1"}
        with pytest.raises(ApiError, match="401 Unauthorized"):
            api.get("/api/v1/nodes", {})

    assert runs(tmp_path) == 3
    told = json.loads((tmp_path / "run-0").read_text("utf-8"))
    spec = {"interactive": False, "cluster": {"server": url}}
    assert told == {"apiVersion": VERSION, "kind": "ExecCredential", "spec": spec}


@pytest.mark.parametrize(("in_s", "expected"), [(3600.0, 1), (-1.0, 3)])
def test_a_token_that_ends_is_asked_for_again(cluster, tmp_path, in_s, expected):
    until = datetime.fromtimestamp(time.time() + in_s, UTC).isoformat()
    program = section(tmp_path, {"token": "t", "expirationTimestamp": until})
    with api_server(cluster) as url:
        api = api_of(tmp_path, url, exec=program)
        api.get("/api/v1/nodes", {})
        api.get("/api/v1/nodes", {})

    assert runs(tmp_path) == expected


def test_a_token_file_is_read_again_once_its_token_is_refused(cluster, tmp_path):
    (tmp_path / "token").write_text("one\n", "utf-8")
    cluster.tokens = {"one"}
    with api_server(cluster) as url:
        api = api_of(tmp_path, url, tokenFile="token")
        api.get("/api/v1/nodes", {})
        cluster.tokens = {"two"}
        (tmp_path / "token").write_text("two\n", "utf-8")
        api.get("/api/v1/nodes", {})
        cluster.tokens = {"three"}
        (tmp_path / "token").unlink()
        with pytest.raises(ApiError, match="token: cannot be read"):
            api.get("/api/v1/nodes", {})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "user.exec.apiVersion: .*v1beta1",
        ),
        ({"command": "./none", "installHint": "get it"}, "'./none' cannot be run; .*get it"),
        ({"interactiveMode": "Always"}, "user.exec.interactiveMode: .*'Never' or 'IfAvailable'"),
        ({"args": "get"}, "user.exec.args: Input should be a valid list$"),
        ({"env": ["A=b"]}, "user.exec.env.0: .*valid dictionary"),
    ],
)
def test_wrong_sections_are_refused(tmp_path, change, match):
    program = section(tmp_path, {"token": "t"}, **change)

    with pytest.raises(ValueError, match=match):
        api_of(tmp_path, "http://127.0.0.1:1", exec=program)


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        ("no JSON", "answer of exec: Invalid JSON"),
        (
            '{"apiVersion": "v1", "status": {"token": "t"}}',
            "apiVersion must be client.authentication.k8s.io/v1",
        ),
        ({}, "status: .*must have a token"),
        ({"clientKeyData": "k", "token": "t"}, "must be given together"),
        ({"token": "t", "expirationTimestamp": "soon"}, "expirationTimestamp: .*valid datetime"),
        ({"token": 1}, "status.token: Input should be a valid string"),
    ],
)
def test_programs_that_print_something_else_are_refused(tmp_path, answer, match):
    """At the start, with one line; while the extender runs they are errors of the API server."""
    program = section(tmp_path, answer if isinstance(answer, dict) else {})
    if isinstance(answer, str):
        (tmp_path / "answer").write_text(answer, "utf-8")

    with pytest.raises(ValueError, match=match):
        api_of(tmp_path, "http://127.0.0.1:1", exec=program)


def test_a_program_that_fails_says_why(tmp_path):
    program = section(tmp_path, {}) | {"env": []}

    with pytest.raises(ValueError, match=r"(?s)login: ended with 1: .*KeyError: 'MARK'"):
        api_of(tmp_path, "http://127.0.0.1:1", exec=program)


@pytest.mark.parametrize("trusts", ["itself", "the system", "another"])
def test_a_server_is_asked_that_the_authority_has_signed(cluster, tmp_path, trusts):
    """Nothing is sent to a server with another certificate, nor by a pair that does not fit."""
    (tmp_path / "other").mkdir()
    key, certificate = certificate_in(tmp_path)
    other_key, other = certificate_in(tmp_path / "other")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with api_server(cluster, tls) as url:
        path = kubeconfig(tmp_path, url, token="secret")
        content = json.loads(path.read_text("utf-8"))
        if trusts != "the system":
            authority = {"itself": certificate, "another": other}[trusts].read_bytes()
            of_cluster = content["clusters"][0]["cluster"]
            of_cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
        path.write_text(json.dumps(content), "utf-8")
        api = reach(path, in_cluster=False, timeout_s=10.0)
        if trusts == "itself":
            assert api.get("/api/v1/nodes", {})["items"] == []
        else:
            with pytest.raises(ApiError, match="certificate verify failed"):
                api.get("/api/v1/nodes", {})
        assert bool(cluster.queries) == (trusts == "itself")
        pair = {"client-certificate": str(certificate), "client-key": str(other_key)}
        with pytest.raises(ValueError, match=r"config: API server: .*client-key cannot be used"):
            api_of(tmp_path, url, **pair)


def test_a_pod_asks_by_its_service_account(cluster, tmp_path, monkeypatch):
    """Over TLS, at the address of its environment; a token that was renewed is read again."""
    key, certificate = certificate_in(tmp_path)
    token = tmp_path / "token"
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificate))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with api_server(cluster, tls) as url:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", url.rpartition(":")[2])
        with pytest.raises(ValueError, match=r"--in-cluster: needs .*token file does not exist"):
            reach(None, in_cluster=True, timeout_s=10.0)
        for text in ("one", "two"):
            token.write_text(text, "utf-8")
            cluster.tokens = {text}
            if text == "one":
                api = reach(None, in_cluster=True, timeout_s=10.0)
            assert api.get("/api/v1/nodes", {})["items"] == []
