"""Set-up of the virtual environment: `python3.11 requirements/install.py .venv train.lock`.

pip installs uv, of the version in `installer.lock`, and uv installs what the lock lists. Each
package has its version there, so nothing is resolved. uv does not read pip's configuration: the
indexes, certificate and proxy of pip are handed to it, unless its own variables name others.
"""

import os
import subprocess
import sys
import venv
from ast import literal_eval
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
VARIABLES = {  # option of pip: variable of uv and what separates its values
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "no-index": ("UV_NO_INDEX", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
SECTIONS = ("global", "install", ":env:")  # the later wins, as in pip


def uv_variables(listing: Iterable[str]) -> dict[str, str]:
    """Variables of uv that say what the lines of `pip config list` say.

    >>> uv_variables(["global.index-url='https://mirror/simple'", "global.find-links='/a /b'"])
    {'UV_DEFAULT_INDEX': 'https://mirror/simple', 'UV_FIND_LINKS': '/a,/b'}
    """
    options: dict[tuple[str, str], str] = {}
    for line in listing:
        key, _, value = line.partition("=")
        section, _, option = key.partition(".")
        options[section, option] = str(literal_eval(value))
    found = {}
    for option, (variable, separator) in VARIABLES.items():
        values = [options[section, option] for section in SECTIONS if (section, option) in options]
        if values:
            found[variable] = separator.join(values[-1].split())
    return found


def environment(pip: list[str], own: Mapping[str, str]) -> dict[str, str]:
    """Variables for uv: those that are set, before those that follow from pip's configuration.

    Every index is searched for the version in the lock, as pip does it; uv alone would stop at the
    first that has the package in any version.
    """
    listing = _output([*pip, "config", "list"]).splitlines()
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **uv_variables(listing), **own}


CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA_NOTE = (
    "set-up: this torch is the build for CUDA, so several GB of its libraries follow; without a "
    f"GPU: PIP_EXTRA_INDEX_URL={CPU_INDEX} make train"
)
"""Line where PyPI's wheel of torch brings CUDA."""


def needs_cuda(site_packages: Path) -> bool:
    """Whether the installed torch is a build that loads the CUDA libraries of other packages."""
    (torch,) = distributions(name="torch", path=[str(site_packages)])
    return any(line.startswith(("nvidia-", "cuda-")) for line in torch.requires or ())


def install(folder: Path, lock: Path) -> None:
    """Make the virtual environment, and install the lock, torch and this project into it."""
    has_pip = find_spec("pip") is not None
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=not has_pip, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    if not has_pip:
        pip = [str(python), "-m", "pip"]
    quiet = ["-qq", "--disable-pip-version-check"]
    _run(
        [
            *pip,
            "install",
            *quiet,
            "--no-deps",
            "--no-compile",
            "--requirement",
            _listed("installer.lock"),
        ]
    )

    print(f"set-up: the packages of {lock.name} into {folder}", file=sys.stderr)
    variables = environment(pip[:3], os.environ)
    uv = [str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--no-deps"]
    uv += ["--python", str(python)]
    _run([*uv, "--requirement", str(lock), "--requirement", _listed("torch.txt")], variables)
    (site_packages,) = folder.glob("lib/python3*/site-packages")
    if needs_cuda(site_packages):
        print(CUDA_NOTE, file=sys.stderr)
        _run([*uv, "--requirement", _listed("cuda.lock")], variables)
    _run([*uv, "--no-build-isolation", "--editable", str(FOLDER.parent)], variables)


def _listed(name: str) -> str:
    """Path of a list in the folder of this script."""
    return str(FOLDER / name)


def _run(command: list[str], variables: Mapping[str, str] | None = None) -> None:
    """Run one step; its error output is the user's."""
    subprocess.run(command, check=True, env=variables)


def _output(command: list[str]) -> str:
    """Standard output of one step."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    """Install the lock named by the second argument into the folder named by the first."""
    if sys.version_info < (3, 11) or len(sys.argv) != 3:
        print("usage: python3.11 requirements/install.py VENV LOCK", file=sys.stderr)
        return 2
    try:
        install(Path(sys.argv[1]), FOLDER / sys.argv[2])
    except subprocess.CalledProcessError as error:
        print(f"set-up: {' '.join(error.cmd)}: exit code {error.returncode}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
