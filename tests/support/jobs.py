"""A job on a session that the tests share."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from frazil.errors import FrazilError
from frazil.job.context import JobContext
from frazil.lake.iceberg_java import Iceberg


def no_wait(seconds: float) -> None:
    """Wait in no time."""


def nothing(step: str) -> None:
    """Do nothing at a step."""


def once(step: str, event: Callable[[], object]) -> Callable[[str], None]:
    """Return a failpoint at which `event` happens at the first hit of `step`."""
    hits: list[str] = []

    def reached(here: str) -> None:
        if here == step and not hits:
            hits.append(here)
            event()

    return reached


def let(act: Callable[[], object]) -> None:
    """Do it; a refusal is an answer too."""
    with suppress(FrazilError):
        act()


class Crash(BaseException):
    """Ends a run as `kill -9` would, but for the process; no code catches it."""


def crash_at(wanted: str) -> Callable[[str], None]:
    """Return a failpoint that ends the run at the step."""

    def failpoint(step: str) -> None:
        if step == wanted:
            raise Crash

    return failpoint


HMAC_KEY = "a key of 26 characters, yes"


def job(
    iceberg: Iceberg,
    *,
    run: str = "",
    clock: Callable[[], float] = time.time,
    wait: Callable[[float], None] = no_wait,
    failpoint: Callable[[str], None] = nothing,
    **more: Any,
) -> JobContext:
    """Return a job of version `test`. Its run has a name of its own unless one is given; it knows no Kafka unless one is given."""
    known: dict[str, Any] = {
        "spark": iceberg.spark,
        "kafka": None,
        "version": "test",
        "secret": lambda _: HMAC_KEY,
        **more,
    }
    return JobContext(
        iceberg=iceberg,
        run=run or uuid.uuid4().hex,
        clock=clock,
        wait=wait,
        new_id=lambda: uuid.uuid4().hex,
        failpoint=failpoint,
        **known,
    )
