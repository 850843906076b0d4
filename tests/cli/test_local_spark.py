"""What a command on this machine says if its JVM is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.cli.local_spark import hosted
from frazil.errors import JvmEnded, TopicRecreated


def work(error: Exception, tmp_path: Path, *, answers: bool, is_stopping: bool = False) -> None:
    lang = SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=lang)) if answers else None

    @contextmanager
    def begun() -> Iterator[Any]:
        yield SimpleNamespace(spark=SimpleNamespace(_jvm=jvm))

    stopping = threading.Event()
    with hosted(begun(), stopping, log=tmp_path / "spark.log"):
        if is_stopping:
            stopping.set()
        raise error


REFUSED = ConnectionRefusedError(111, "Connection refused")


def test_a_lost_jvm_is_named(tmp_path: Path) -> None:
    with pytest.raises(JvmEnded, match="Spark's JVM ended"):
        work(REFUSED, tmp_path, answers=False)


def test_a_jvm_that_the_same_signal_ended_is_an_interruption(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        work(REFUSED, tmp_path, answers=False, is_stopping=True)


@pytest.mark.parametrize("error", [REFUSED, TopicRecreated("another id")], ids=repr)
def test_other_errors_stay_what_they_are(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(error)):
        work(error, tmp_path, answers=True)
