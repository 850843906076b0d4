"""Secrets: from the reference that an environment holds to the value, as late as possible and as seldom."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

from frazil.clients.aws_session import aws_client, unanswered
from frazil.declaration.secret import Secret
from frazil.errors import SecretUnavailable

_NESTING = 3
"""A JAAS line, in the repr of an exception, in a log line of JSON."""

MASK = "[redacted]"

SHORTEST = 3
"""Values of fewer characters are not masked: each text would be shredded, and nothing be hidden."""

SHORTEST_LINE = 16
"""Lines of a value, of a PEM key say, are masked by themselves from this length on: logs break texts into lines."""


class Redactor:
    """Knows the secret values that were read so far, and masks them. Safe to share between threads; `repr` shows
    nothing.
    """

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()
        self._values: dict[str, tuple[str, ...]] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return "Redactor()"

    def add(self, value: str) -> None:
        """Mask `value` from now on, as it is and as it looks inside URLs, JSON, Python reprs, JAAS lines and base64."""
        if len(value) < SHORTEST or value in self._values:
            return
        with self._lock:
            self._values[value] = tuple(_forms(value))
            self._sort()

    def remove(self, value: str) -> None:
        """Mask `value` no longer: it was a token that has expired."""
        with self._lock:
            if self._values.pop(value, None) is not None:
                self._sort()

    def redact(self, text: str) -> str:
        """Return `text` with every known value replaced by `[redacted]`."""
        found = [form for form in self._forms if form in text]
        # One pass, the longest form first: one may be part of another, or of the mask.
        return re.sub("|".join(map(re.escape, found)), MASK, text) if found else text

    def _sort(self) -> None:
        forms = {form for known in self._values.values() for form in known}
        # Readers take no lock: they see the old forms or the new ones.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _forms(value: str) -> Iterator[str]:
    """Yield the value as texts may hold it: escaped for JAAS, JSON, Python's repr, URLs, one inside the other."""
    wholes = {value}
    for _ in range(_NESTING):
        wholes |= {escape(whole) for whole in wholes for escape in _ESCAPES}
    yield from wholes
    yield base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    for line in value.splitlines():
        if len(line) >= SHORTEST_LINE and not line.startswith("-----"):
            yield line


def in_jaas(text: str) -> str:
    """Return a text as it is within quotes in a JAAS line."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")


_ESCAPES: tuple[Callable[[str], str], ...] = (
    in_jaas,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: quote(text, safe="", errors="replace"),
)


_log = logging.getLogger(__name__)

LARGEST_BYTES = 65_536
"""The largest secret that is read: Secrets Manager's own limit
(https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html)."""

LONG_USERNAME = 12
"""User names from this length on are API keys, and masked like secrets; shorter ones are words that texts need."""

_OPEN_TO_OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def secrets_manager(region: str | None) -> Any:
    """Return a Secrets Manager client with short timeouts (5 s to connect, 10 s to answer, 3 attempts)."""
    return aws_client("secretsmanager", answer_seconds=10, attempts=3, region_name=region)


class Secrets:
    """The values of secrets, each read once and kept in memory until `forget`.

    `environment` is where variables are looked up, usually `os.environ`, handed over by the entry point. `manager`
    makes a Secrets Manager client for a region (None: AWS's default chain decides). `redactor` learns every value that
    is read.
    """

    def __init__(
        self, environment: Mapping[str, str], *, manager: Callable[[str | None], Any] = secrets_manager
    ) -> None:
        self.redactor = Redactor()
        self._environment = environment
        self._manager = manager
        self._managers: dict[str | None, Any] = {}
        self._values: dict[tuple[str, str], str] = {}

    def __repr__(self) -> str:
        return "Secrets()"

    def read(self, secret: Secret) -> str:
        """Return the secret's value. Raises `SecretUnavailable`, which names the reference and never holds a value."""
        value = self._value(secret)
        self.redactor.add(value)
        return value

    def username(self, secret: Secret) -> str:
        """Return a user name's value: like `read`, but masked in texts only if it is as long as an API key (12 characters)."""
        value = self._value(secret)
        if len(value) >= LONG_USERNAME:
            self.redactor.add(value)
        return value

    def forget(self, *secrets: Secret | None) -> None:
        """Forget these, so that the next call reads them again: the service refused them, and they may have been rotated."""
        for secret in secrets:
            if secret is not None:
                self._values.pop(_key(secret), None)

    def _value(self, secret: Secret) -> str:
        key = _key(secret)
        text = self._values.get(key)
        if text is None:
            text = self._read(secret)
            self._values[key] = text
        value = text if secret.field is None else _member(secret, text, self.redactor)
        if not value:
            raise _unavailable(secret, "it is empty")
        return value

    def _read(self, secret: Secret) -> str:
        """Return what the place holds: the value, or the JSON object that has it as a field."""
        if secret.env is not None:
            if secret.env not in self._environment:
                raise _unavailable(secret, "it is not set")
            return self._environment[secret.env]
        if secret.file is not None:
            return _file(secret, Path(secret.file))
        return self._stored(secret, secret.secretsmanager or "")

    def _stored(self, secret: Secret, name: str) -> str:
        from botocore.exceptions import BotoCoreError, ClientError

        region = name.split(":")[3] if name.startswith("arn:") and name.count(":") >= 6 else None
        try:
            if region not in self._managers:
                self._managers[region] = self._manager(region)
            answer = self._managers[region].get_secret_value(SecretId=name)
        # botocore's sentences may quote the request: its code or class says enough.
        except ClientError as error:
            raise _unavailable(secret, *_refusal(error.response.get("Error", {}).get("Code", "unknown"))) from None
        except BotoCoreError as error:
            raise _unavailable(secret, *unanswered("Secrets Manager", error)) from None
        if isinstance(answer.get("SecretString"), str):
            return str(answer["SecretString"])
        return _text(secret, answer.get("SecretBinary") or b"")


def reference(secret: Secret) -> str:
    """Return the secret's reference for messages: `env KAFKA_PASSWORD`, `secretsmanager prod/kafka field password`."""
    if secret.env is not None:
        return f"env {secret.env}"
    if secret.file is not None:
        return f"file {secret.file}"
    return f"secretsmanager {secret.secretsmanager}" + (f" field {secret.field}" if secret.field is not None else "")


def references(*secrets: Secret) -> str:
    """Return the references of several secrets for messages, each once."""
    return ", ".join(dict.fromkeys(map(reference, secrets)))


def _key(secret: Secret) -> tuple[str, str]:
    """Return one key for all fields of a stored secret: user name and password often are two fields of one."""
    return reference(secret).split(" ")[0], secret.env or secret.file or secret.secretsmanager or ""


def _unavailable(secret: Secret, what: str, do: str = "") -> SecretUnavailable:
    return SecretUnavailable(what, where=f"secret {reference(secret)}", do=do or "Put it there, or name another place")


def _file(secret: Secret, path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise _unavailable(secret, f"it cannot be read ({error.strerror})") from None
    if len(data) > LARGEST_BYTES:
        raise _unavailable(secret, f"it is larger than {LARGEST_BYTES} bytes")
    if mode & _OPEN_TO_OTHERS:
        _log.warning("secret %s: the file is open to other users of this machine; run chmod 600", reference(secret))
    return _text(secret, data).removesuffix("\n").removesuffix("\r")


def _text(secret: Secret, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        # The exception holds the bytes: it must not be chained.
        raise _unavailable(secret, "it is not UTF-8 text") from None


def _member(secret: Secret, text: str, redactor: Redactor) -> str:
    """Return the field of the JSON object that a stored secret holds. What is no object is masked completely, as it may be the
    value.
    """
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        redactor.add(text)
        raise _unavailable(secret, "it is not a JSON object, so it has no fields", "Remove `field`, or store an object")
    member = members.get(secret.field)
    if isinstance(member, int | float) and not isinstance(member, bool):
        return str(member)
    if not isinstance(member, str):
        found = "has no such field" if secret.field not in members else "holds something else than text there"
        raise _unavailable(secret, f"its JSON {found}", "Name a field that is there")
    return member


def _refusal(code: str) -> tuple[str, str]:
    """Return what Secrets Manager's error code means, and what to do."""
    match code:
        case "ResourceNotFoundException":
            return "Secrets Manager has no such secret in this account and region", "Create it, or correct its name"
        case "AccessDeniedException":
            return (
                "Secrets Manager does not let us read it",
                "Allow secretsmanager:GetSecretValue (and kms:Decrypt, if it has its own key) to our role",
            )
        case _:
            return f"Secrets Manager refused ({code})", ""
