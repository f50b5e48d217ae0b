from __future__ import annotations

import pytest

from octavo_serve.callers import rates
from octavo_serve.callers.rates import Limiter, RateLimit

SECOND = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 123_456_789

    def __call__(self) -> int:
        return self.now


@pytest.mark.parametrize(("requests", "per_seconds"), [(1, 1), (3, 1), (7, 10), (100, 60), (1, 3600)])
def test_a_caller_gets_so_many_requests_and_then_one_at_each_share_of_the_period(requests: int, per_seconds: int):
    clock = Clock()
    limiter = Limiter(RateLimit(requests, per_seconds), clock)
    assert [limiter.take("a") for _ in range(requests)] == [0] * requests
    start = clock.now
    for n in range(1, 3 * requests + 1):
        due = start + -(-n * per_seconds * SECOND // requests)
        clock.now = due - 1
        assert limiter.take("a") == 1
        clock.now = due
        assert limiter.take("a") == 0


@pytest.mark.parametrize(
    ("passed", "wait"),
    [(0, 10), (1, 10), (SECOND, 9), (9 * SECOND, 1), (10 * SECOND - 1, 1), (10 * SECOND, 0)],
)
def test_the_wait_is_the_seconds_until_a_request_is_allowed_rounded_up(passed: int, wait: int):
    clock = Clock()
    limiter = Limiter(RateLimit(1, 10), clock)
    limiter.take("a")
    clock.now += passed
    assert limiter.take("a") == wait


def test_a_refused_request_costs_nothing():
    clock = Clock()
    limiter = Limiter(RateLimit(1, 10), clock)
    for _ in range(100):
        limiter.take("a")
    clock.now += 10 * SECOND
    assert limiter.take("a") == 0


def test_a_long_rest_does_not_save_up_more_than_the_limit():
    clock = Clock()
    limiter = Limiter(RateLimit(2, 1), clock)
    limiter.take("a")
    clock.now += 1000 * SECOND
    assert [limiter.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_callers_do_not_use_up_each_others_requests():
    limiter = Limiter(RateLimit(1, 10), Clock())
    assert [limiter.take(caller) for caller in "abab"] == [0, 0, 10, 10]


def test_only_the_callers_of_late_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rates, "MAX_CALLERS", 3)
    limiter = Limiter(RateLimit(1, 10), Clock())
    assert [limiter.take(caller) > 0 for caller in "abcabcdbc"] == [False] * 3 + [True] * 3 + [False, True, True]
    assert limiter.take("a") == 0
