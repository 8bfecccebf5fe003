"""Browsers that send requests on behalf of foreign pages, for tests."""

from hypothesis import strategies as st

HOSTS = st.from_regex(r"[a-z0-9-]{1,12}(\.[a-z0-9-]{1,8}){0,3}", fullmatch=True).filter(
    lambda name: name != "localhost" and not name.endswith(".svc") and any(map(str.isalpha, name))
)
KINDS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")


@st.composite
def foreign_headers(draw: st.DrawFn, own: str) -> dict[str, str]:
    """Headers of a browser that shows a page of another site."""
    kind = "application/json"
    match draw(st.integers(0, 2)):
        case 0:
            own = draw(HOSTS) + draw(st.sampled_from(["", ":8888"]))
            origin = f"http://{own}"
        case 1:
            origin = draw(HOSTS.map("https://{}".format) | st.just("null"))
        case _:
            origin, kind = f"http://{own}", draw(st.sampled_from(KINDS))
    return {"host": own, "origin": origin, "content-type": kind}
