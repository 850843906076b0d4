from __future__ import annotations

import pytest

from frazil.clients.registry.retry import RetryPolicy, retry_after


def test_pauses_double_up_to_a_bound() -> None:
    policy = RetryPolicy(first_pause_seconds=0.5, longest_pause_seconds=3.0)
    assert [policy.longest_pause(failures) for failures in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": " 12 "}, 12.0),
        ({"Retry-After": "-1"}, 0.0),
        ({"Retry-After": "1.5"}, 0.0),
        ({"Retry-After": "٣"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 GMT"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 GMT", "Date": "Wed, 01 Jan 2031 00:00:00 GMT"}, 9.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:00 GMT", "Date": "Wed, 01 Jan 2031 00:00:09 GMT"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 GMT", "Date": "2031"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 -0000", "Date": "Wed, 01 Jan 2031 00:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_clock(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds
