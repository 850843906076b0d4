"""A service that hangs or a check that fails costs its own line, and those that follow from it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from frazil.doctor.check_result import PARALLEL, Check, Result, Step, examined
from frazil.errors import KafkaRefused
from frazil.exit_codes import Exit, worst


def ok(name: str) -> Callable[[], Check]:
    return lambda: Check.ok(name, "fine")


def run(*steps: Step, seconds: float = 5, total: float = 10) -> dict[str, Check]:
    return {check.name: check for check in examined(steps, seconds=seconds, total_seconds=total)}


def refused() -> Check:
    raise KafkaRefused("the broker does not accept our login", where="k:9092", do="Check env PASSWORD")


def test_what_follows_from_a_failure_is_skipped_and_not_failed() -> None:
    checks = run(
        Step(name="login", work=refused),
        Step(name="topic", work=ok("topic"), after=("login",)),
        Step(name="read", work=ok("read"), after=("topic",)),
        Step(name="java", work=ok("java")),
    )
    assert [check.result for check in checks.values()] == ["failed", "skipped", "skipped", "ok"]
    assert checks["login"].found == "k:9092: the broker does not accept our login"
    assert (checks["login"].remedy, checks["login"].exit) == ("Check env PASSWORD", Exit.SERVICE_UNAVAILABLE)
    assert checks["topic"].found == "not checked: login failed"


def test_a_check_that_hangs_fails_at_its_deadline_and_others_go_on() -> None:
    for_ever = threading.Event()
    began = time.monotonic()
    hanging = [Step(name=f"h{n}", work=lambda: Check.ok("h", str(for_ever.wait(30)))) for n in range(PARALLEL + 2)]
    checks = run(*hanging, Step(name="java", work=ok("java")), seconds=0.3, total=1)
    for_ever.set()
    assert time.monotonic() - began < 5
    assert checks["h0"].found == "no answer within 0.3 s"
    assert checks["java"].result is Result.OK
    assert worst(check.exit for check in checks.values()) is Exit.SERVICE_UNAVAILABLE


def test_all_checks_end_when_the_time_is_over() -> None:
    blocked = threading.Event()
    steps = [Step(name=str(n), work=lambda: Check.ok("n", str(blocked.wait(30)))) for n in range(4 * PARALLEL)]
    checks = run(*steps, seconds=0.2, total=0.3)
    blocked.set()
    assert len(checks) == 4 * PARALLEL
    assert {check.result for check in checks.values()} == {Result.FAILED}
    assert checks[str(4 * PARALLEL - 1)].found == "the time for all checks was over before it began"


def test_checks_come_in_the_order_of_their_steps() -> None:
    slow = Step(name="slow", work=lambda: (time.sleep(0.1), Check.ok("slow", ""))[1])
    assert list(run(slow, Step(name="quick", work=ok("quick")))) == ["slow", "quick"]


def test_a_defect_in_a_check_is_its_failure() -> None:
    checks = run(Step(name="odd", work=lambda: Check.ok("odd", [][0])), Step(name="java", work=ok("java")))
    assert checks["odd"].found == "IndexError: list index out of range"
    assert worst(check.exit for check in checks.values()) is Exit.FAULT
    assert checks["java"].result is Result.OK


def test_a_check_that_no_step_has_blocks_nothing() -> None:
    assert run(Step(name="columns", work=ok("columns"), after=("registry",)), total=1)["columns"].result is Result.OK
