"""An event as log services read it: an ISO 8601 time, a level and a sentence, then the event's own members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

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
}


def log_line(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of one JSON line. `time` comes as seconds since 1970 and goes as `2026-01-31T12:00:00.000Z`.

    `level` is INFO, WARN or ERROR. `message` is the event's own, or a sentence made of its numbers.
    """
    rest = dict(event)
    name, seconds = str(rest.get("event", "")), rest.pop("time", None)
    time = {} if seconds is None else {"time": iso(seconds)}
    sentence = _SENTENCES.get(name)
    message = rest.pop("message", None) or (sentence(rest) if sentence else name.replace("_", " "))
    return {**time, "level": _level(name, rest), "event": name, "message": message, **_without(rest, "event")}


def iso(seconds: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level(name: str, facts: Mapping[str, Any]) -> str:
    if facts.get("ended") in ("failed", "decision_required"):
        return "ERROR"
    return "WARN" if facts.get("rejected") or facts.get("gave_up") else _LEVELS.get(name, "INFO")


def _without(facts: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != name}


def _committed(facts: Mapping[str, Any]) -> str:
    rejected, skipped = sum(facts["rejected"].values()), sum(facts["skipped"].values())
    more = "".join(f", {number:,} {what}" for number, what in ((rejected, "rejected"), (skipped, "skipped")) if number)
    return f"{facts['read']:,} records read, {facts['written']:,} landed{more}"


def _maintained(facts: Mapping[str, Any]) -> str:
    why = f": {facts['why']}" if facts.get("why") else ""
    return f"{facts.get('action')} of {facts.get('table')}: {facts.get('ended')}{why}"


_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "batch_committed": _committed,
    "job_started": lambda facts: ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    "maintained": _maintained,
    "idle": lambda facts: f"nothing to read, lag {facts.get('lag')}",
    "pipeline_finished": lambda facts: f"finished: {facts.get('read', 0):,} read, {facts.get('written', 0):,} landed",
    "schema_evolved": lambda facts: "; ".join(facts.get("changes", ())),
    "snapshots_expired": lambda facts: str(facts.get("gave_up") or f"{facts.get('snapshots')} snapshots expired"),
    "files_compacted": lambda facts: str(facts.get("why") or f"{facts.get('files_removed')} files rewritten"),
    "key_index_built": lambda facts: f"an index of {facts.get('rows', 0):,} keys, made in {facts.get('seconds')} s",
    "key_index_dropped": lambda facts: f"no index of keys: {facts.get('why')}",
    "rejected": lambda facts: f"{facts['rejected']:,} records rejected: {facts.get('reason')}",
    "skipped": lambda facts: f"{facts['skipped']:,} records skipped: {facts.get('reason')}",
}
