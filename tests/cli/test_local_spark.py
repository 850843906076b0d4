"""What a command on this machine says if its JVM is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.cli import local_spark
from frazil.cli.local_spark import local_job
from frazil.errors import JvmEnded, TopicRecreated
from frazil.job import session as job_session


def work(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool, is_stopping: bool = False
) -> None:
    lang = SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=lang)) if answers else None

    @contextmanager
    def opened(*_: Any, stopping: threading.Event, **__: Any) -> Iterator[Any]:
        if is_stopping:
            stopping.set()
        yield SimpleNamespace(spark=SimpleNamespace(_jvm=jvm))

    monkeypatch.setattr(job_session, "open_job", opened)
    monkeypatch.setattr(local_spark, "jars_here", lambda _: [])
    anything: Any = None
    with local_job(anything, anything, master="local[1]", memory="1g", log=tmp_path / "spark.log"):
        raise error


REFUSED = ConnectionRefusedError(111, "Connection refused")


def test_a_lost_jvm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JvmEnded, match="Spark's JVM ended"):
        work(REFUSED, tmp_path, monkeypatch, answers=False)


def test_a_jvm_that_the_same_signal_ended_is_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        work(REFUSED, tmp_path, monkeypatch, answers=False, is_stopping=True)


@pytest.mark.parametrize("error", [REFUSED, TopicRecreated("another id", pipeline="p", place="topic a")], ids=repr)
def test_other_errors_stay_what_they_are(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(type(error)):
        work(error, tmp_path, monkeypatch, answers=True)
