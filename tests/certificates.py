"""Certificates for tests, made by the program openssl."""

import subprocess
from pathlib import Path

import pytest


def certificate_in(folder: Path) -> tuple[Path, Path]:
    """Key and certificate of 127.0.0.1, which signs itself."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    names = ("-subj", "/CN=scheduler", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", "tls.key", "-out", "tls.crt")
    try:
        words = ["openssl", "req", "-x509", *key, *names, *files]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the program openssl")
    return folder / "tls.key", folder / "tls.crt"
