"""Times of day in traces, in seconds from a fixed zero."""

from datetime import UTC, datetime


def seconds_of(text: str) -> float | None:
    """Seconds of a time such as ``2017-10-03 14:05:00`` or with an offset; None if there is none.

    A time without a zone counts as if all were of one zone without changes of the clock.

    Examples
    --------
    >>> seconds_of("1970-01-01 00:01:00"), seconds_of("1970-01-01T08:00:30+08:00")
    (60.0, 30.0)
    >>> seconds_of("None") is None
    True
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return _in_seconds(found)


def slashed_seconds_of(text: str) -> float | None:
    """Seconds of a time such as ``2023/7/15 02:19``, as `seconds_of`.

    Examples
    --------
    >>> slashed_seconds_of("1970/1/1 0:02"), slashed_seconds_of("")
    (120.0, None)
    """
    try:
        return _in_seconds(datetime.strptime(text.strip(), "%Y/%m/%d %H:%M"))
    except ValueError:
        return None


def _in_seconds(found: datetime) -> float:
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
