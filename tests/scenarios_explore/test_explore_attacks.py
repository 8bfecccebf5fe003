"""The explorer under attack: pages of other sites in the same browser."""

import pytest
from foreign_pages import foreign_headers
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("dash", reason='no dash; pip install "eastwest[explore]"')

from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.scene import Settings
from scenarios.frame.http_door import MOST_BODY_BYTES

pytestmark = pytest.mark.attack
PATHS = ("/", "/_dash-layout", "/_dash-dependencies", "/runs/run", "/_dash-update-component")


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Method, path, headers and body; the status of the answer, and whether it shows the report."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "run").mkdir()
    (folder / "run" / "report.html").write_text("the report", "utf-8")
    settings = Settings(model="llama2_7b", num_sequences=4)
    client = explorer_app(Explorer(settings=settings, runs=folder)).server.test_client()

    def call(
        method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[int, bool]:
        answer = client.open(path, method=method, headers=headers, data=body, buffered=True)
        return answer.status_code, b"the report" in answer.data

    return call


@given(headers=foreign_headers("127.0.0.1:8050"), path=st.sampled_from(PATHS))
def test_a_foreign_page_gets_nothing(ask, headers, path):
    """Forms are refused always, pages unless their kind alone is odd: a page has none."""
    assert ask("POST", path, headers)[0] in (403, 415, 421)
    if headers["content-type"] == "application/json":
        assert ask("GET", path, headers)[0] in (403, 421)


@given(size=st.integers(MOST_BODY_BYTES + 1, 2 * MOST_BODY_BYTES))
def test_a_body_that_is_too_large_is_refused(ask, size):
    headers = {"host": "127.0.0.1:8050", "content-type": "application/json"}

    assert ask("POST", "/_dash-update-component", headers, bytes(size))[0] == 413
    assert ask("GET", "/runs/run", headers) == (200, True)
