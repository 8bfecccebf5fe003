"""Calls of the explorer's page for tests, as its scripts make them."""

import json

from scenarios.explore.controls import CONTROLS
from scenarios.explore.scene import Settings

SMALL = Settings(model="llama2_7b", num_sequences=4)
GOOD = ("east_central_west", "llama2_7b", "pipeline", "1f1b", 0, 0.0, 8, 4)


def callbacks(client) -> list[dict]:
    """Calls of the page, each with good values and a click."""
    found = []
    for row in client.get("/_dash-dependencies").get_json():
        if row["clientside_function"]:
            continue
        parts = [one.rsplit(".", 1) for one in row["output"].strip(".").split("...")]
        outputs = [{"id": name, "property": value} for name, value in parts]
        value_of = dict(zip(CONTROLS, GOOD, strict=True))
        call = {"output": row["output"], "changedPropIds": []}
        call["outputs"] = outputs if row["output"].startswith("..") else outputs[0]
        for part in ("inputs", "state"):
            call[part] = [one | {"value": value_of.get(one["id"], 1)} for one in row[part]]
        found.append(call)
    return found


def sent(client, call: object) -> tuple[int, str]:
    headers = {"host": "127.0.0.1:8050", "content-type": "application/json"}
    body = call if isinstance(call, bytes) else json.dumps(call).encode()
    answer = client.post("/_dash-update-component", headers=headers, data=body)
    return answer.status_code, answer.get_data(as_text=True)
