"""Arguments, chosen pipelines, and the log of the entry points of jobs."""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.declaration.documents.document import Document
from frazil.errors import FrazilError, InvalidInput
from frazil.exit_codes import Exit, exit_of

REFUSED = "topic "
"""The beginning of the name of a topic that matches a pattern and has no pipeline: no pipeline's name has a space."""

_LEVELS = {
    "decision_required": "ERROR",
    "pipeline_failed": "ERROR",
    "service_unavailable": "WARN",
    "pipeline_retried": "WARN",
    "batch_retried": "WARN",
    "schema_incompatible": "WARN",
    "properties_omitted": "WARN",
    "foreign_commit": "WARN",
    "table_differs": "WARN",
    "many_files": "WARN",
    "rejected": "WARN",
    "proof_unwritten": "WARN",
    "keys_may_be_framed": "WARN",
    "topic_gone": "WARN",
}


def log_line(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of one JSON line. `time` comes as seconds since 1970 and goes as `2026-01-31T12:00:00.000Z`.

    `level` is INFO, WARN or ERROR. `message` is the event's own, or a sentence made of its numbers.
    """
    rest = dict(event)
    name, seconds = str(rest.pop("event", "")), rest.pop("time", None)
    time = {} if seconds is None else {"time": iso(seconds)}
    sentence = _SENTENCES.get(name)
    message = rest.pop("message", None) or (sentence(rest) if sentence else name.replace("_", " "))
    return {**time, "level": _level(name, rest), "event": name, "message": message, **rest}


def iso(seconds: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level(name: str, facts: Mapping[str, Any]) -> str:
    if facts.get("ended") in ("failed", "decision_required"):
        return "ERROR"
    return "WARN" if facts.get("rejected") or facts.get("gave_up") else _LEVELS.get(name, "INFO")


def _committed(facts: Mapping[str, Any]) -> str:
    sums = {kind: sum(facts.get(kind, {}).values()) for kind in ("rejected", "skipped", "filtered")}
    more = "".join(f", {number:,} {what}" for what, number in sums.items() if number)
    return f"{facts['read']:,} records read, {facts['written']:,} landed{more}"


_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "batch_committed": _committed,
    "job_started": lambda facts: ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    "maintained": lambda facts: (
        f"{facts.get('action')} of {facts.get('table')}: "
        + ": ".join(str(facts[name]) for name in ("ended", "why") if facts.get(name))
    ),
    "idle": lambda facts: f"no record for the table, lag {facts.get('lag')}",
    "topics_matched": lambda facts: f"{facts['topics']:,} topics match {facts['topic']}",
    "pipeline_finished": lambda facts: f"finished: {facts.get('read', 0):,} read, {facts.get('written', 0):,} landed",
    "schema_evolved": lambda facts: "; ".join(facts.get("changes", ())),
    "snapshots_expired": lambda facts: str(facts.get("gave_up") or f"{facts.get('snapshots')} snapshots expired"),
    "files_compacted": lambda facts: str(facts.get("why") or f"{facts.get('files_removed')} files rewritten"),
    "key_index_built": lambda facts: f"an index of {facts.get('rows', 0):,} keys, made in {facts.get('seconds')} s",
    "key_index_dropped": lambda facts: f"no index of keys: {facts.get('why')}",
    "rejected": lambda facts: f"{facts['rejected']:,} records rejected: {facts.get('reason')}",
    "skipped": lambda facts: f"{facts['skipped']:,} records skipped: {facts.get('reason')}",
    "filtered": lambda facts: f"{facts['filtered']:,} records filtered: {facts.get('reason')}",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that every job has."""
    parser.add_argument("--document", type=Path, required=True, help="the pipelines, as `frazil check` writes them")
    parser.add_argument("--environment", type=Path, required=True, help="where they run")
    parser.add_argument("--pipeline", action="append", default=[], help="only this one; may be given again")
    parser.add_argument("--jar", type=Path, action="append", default=[], help="a jar, where the job run brings none")
    parser.add_argument("--master", help="Spark's master, where the job run brings none")
    parser.add_argument(
        "--setting", type=setting, action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )


def setting(text: str) -> tuple[str, str]:
    """Return `KEY=VALUE` as a pair, for argparse."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def more_than_zero(text: str) -> float:
    """Return a finite number above zero, for argparse."""
    if not (number := _number(text)) > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above zero")
    return number


def zero_or_more(text: str) -> float:
    """Return a finite number that is not negative, for argparse."""
    if not (number := _number(text)) >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from zero on")
    return number


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def read(document: Path) -> bytes:
    """Return a file's bytes. Raises `InvalidInput` if it cannot be read."""
    try:
        return document.read_bytes()
    except OSError as error:
        raise InvalidInput.unreadable(document, error) from None


def chosen(pipelines: Sequence[Pipeline], names: Sequence[str], without: Sequence[str] = ()) -> list[Pipeline]:
    """Return the pipelines of these names, all if there are none, but for some. Raises `InvalidInput` for an unknown name."""
    for option, given in (("--pipeline", names), ("--without", without)):
        unknown = sorted(set(given) - {p.name for p in pipelines})
        if unknown:
            what = f"there is no pipeline {', '.join(unknown)}"
            raise InvalidInput(what, where=option, do=f"The document has {', '.join(p.name for p in pipelines)}")
    return [p for p in pipelines if (not names or p.name in names) and p.name not in without]


def chosen_of(
    document: Document, names: Sequence[str], without: Sequence[str] = ()
) -> tuple[list[Pipeline], Callable[[str], bool]]:
    """Return the pipelines of a document that `chosen` returns, and whether a pipeline of a pattern is one of these, by its name.

    With a pattern, a name that is unknown may be one of its pipelines.
    """
    is_open = document.patterns or document.types
    known = {pipeline.name for pipeline in document.pipelines} if is_open else {*names, *without}
    own, left_out = ([name for name in some if name in known] for some in (names, without))
    pipelines = chosen(document.pipelines, own, left_out) if own or not names else []
    return pipelines, lambda name: (not names or name in names) and name not in without


def check_found(names: Sequence[str], found: Iterable[str]) -> None:
    """Raise `InvalidInput` for a chosen name that neither a pipeline nor the topic of a pattern has."""
    if unknown := sorted({*names} - {*found}):
        what = f"neither a pipeline nor a topic of a pattern has the name {', '.join(unknown)}"
        raise InvalidInput(what, where="--pipeline", do="`frazil schema topics` lists topics and pipelines")


def deciding(errors: Mapping[str, FrazilError | None], declared: Collection[str]) -> list[FrazilError | None]:
    """Return the errors that decide how a run ends that a reconciler started, of those by pipeline. `declared` is the document's.

    Of the pipelines of patterns, a good one is enough, and a refused topic does not count: whoever makes a topic could otherwise
    have a release rolled back. Alarms report each of them.
    """
    own = [error for name, error in errors.items() if name in declared]
    matched = [error for name, error in errors.items() if name not in declared and not name.startswith(REFUSED)]
    return own if None in matched else [*own, *matched]


def ended(error: Exception, secrets: Secrets, stopping: threading.Event) -> Exit:
    """Print what ended a job, with its place if it is a defect, and return the exit code.

    A signal to the process group ends Spark's JVM too, at any step of the start: that is no defect.
    """
    code = exit_of(error)
    if code is Exit.FAULT and stopping.is_set():
        print("stopped", file=sys.stderr)
        return Exit.INTERRUPTED
    text = f"error: {error}"
    if code is Exit.FAULT:
        text = (
            "".join(traceback.format_exception(error))
            + "error: this is a defect of Frazil. Report it with this message"
        )
    print(secrets.redactor.redact(text), file=sys.stderr)
    return code


def log(
    secrets: Secrets, lines: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]] = lambda event: (event,)
) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that writes each event to stderr as JSON lines without secrets; `lines` makes several of one event.

    Threads may share it.
    """
    lock = threading.Lock()

    def write(event: Mapping[str, Any]) -> None:
        with lock:
            for facts in lines(event):
                print(secrets.redactor.redact(json.dumps(log_line(facts))), file=sys.stderr, flush=True)

    return write
