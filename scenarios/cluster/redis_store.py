"""State of a scheduler in Redis: two keys of a name, written by the scheduler that came last."""

import secrets
from collections.abc import Mapping

import redis

_FORM = "redis://HOST:PORT/DB#NAME"


class RedisStore:
    """State in a hash of Redis; nothing else there is read, changed or flushed.

    A scheduler that takes the state up becomes its owner. An earlier one that still runs finds that
    out when it next writes, writes nothing, and ends.
    """

    def __init__(self, url: str) -> None:
        address, _, name = url.partition("#")
        if not name:
            raise ValueError(f"--state: must be {_FORM}, got {url!r}")
        self._url, self._token = url, secrets.token_hex(8)
        self._state, self._owner = f"eastwest:{name}:state", f"eastwest:{name}:owner"
        try:
            self._server = redis.Redis.from_url(address, decode_responses=True)
            self._server.set(self._owner, self._token)
        except (redis.RedisError, ValueError) as error:
            raise ValueError(f"--state {url}: cannot be used: {error}") from error

    def read(self) -> dict[str, str]:
        """All texts."""
        return dict(self._server.hgetall(self._state))

    def write(self, changes: Mapping[str, str]) -> None:
        """Write some texts, all of them or none."""
        try:
            with self._server.pipeline() as together:
                together.watch(self._owner)
                if together.get(self._owner) != self._token:
                    raise redis.WatchError
                together.multi()
                together.hset(self._state, mapping=dict(changes))
                together.execute()
        except redis.WatchError as error:
            raise OSError(f"{self._url}: another scheduler has taken this state up") from error
        except redis.RedisError as error:
            raise OSError(f"{self._url}: cannot be written: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._server.close()
