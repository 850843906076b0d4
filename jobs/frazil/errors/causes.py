"""Decide what an exception of a service or its client means, by the text of its causes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

MOST_CHARACTERS = 8_000  # of a cause in a message; a log service refuses events of some hundred thousand


class Failure(StrEnum):
    """The meaning of a failure.

    `MEMORY`: a task ran out of memory, a smaller batch may do. `LOGIN`: the executors' login to Kafka was refused, secrets may
    have been rotated. `KAFKA`: records could not be fetched: the broker is unavailable, or they no longer exist, which the next
    plan finds out. `LAKE`: the catalog or the object store did not answer, was overloaded or refused the login. `DISK`: a disk is
    full. `CONFLICT`: another commit came first. `TIMESTAMP`: a record has a timestamp that Spark's Kafka source cannot hold.
    `OTHER`: waiting does not help.
    """

    MEMORY = "memory"
    LOGIN = "login"
    KAFKA = "kafka"
    LAKE = "lake"
    DISK = "disk"
    CONFLICT = "conflict"
    TIMESTAMP = "timestamp"
    OTHER = "other"

    @property
    def is_outage(self) -> bool:
        """True if a service did not answer, was overloaded or refused the login, so that waiting may help."""
        return self in (Failure.LOGIN, Failure.KAFKA, Failure.LAKE, Failure.DISK)


class Thrown(NamedTuple):
    """One exception of a chain: its class, and its message."""

    name: str
    message: str

    @property
    def simple(self) -> str:
        """The name of the class without its package."""
        return re.split(r"[.$]", self.name)[-1]


# 137 is a process killed by the kernel or the cluster for its memory, 52 Spark's own exit code of an executor that ran out of
# heap (`SparkExitCode.OOM`).
_MEMORY = re.compile(
    r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|exceeding memory limits|ExecutorLostFailure[^\n]*(code:? (137|52)\b|\bOOM)",
    re.IGNORECASE,
)
_NAME = r"(?:[A-Za-z_]\w*\.)+[A-Z]\w*(?:\$\w+)*"
_START = re.compile(rf"(?:Caused by: |: )?({_NAME})(?:: ?|$)(.*)")
_INSIDE = re.compile(rf"(?:.*?\(TID \d+\) \([^)]*\): )?({_NAME})(?:: ?|$)(.*)")
_FRAME = re.compile(r"at [^\s(]+\(.*\)$|\.\.\. \d+ (more|common frames omitted)$|Driver stacktrace:$")

_LOGIN = re.compile(r"(Sasl|Ssl)AuthenticationException$|\.(LoginException|SaslException)$")
_OF_KAFKA = re.compile(r"^org\.apache\.(kafka\.|spark\.sql\.kafka)")
_BROKEN_RECORD = re.compile(
    r"exception when fetching the next record|Record batch for partition .* is invalid|is corrupt"
)
_BROKEN_RECORDS = ("CorruptRecordException", "InvalidRecordException", "RecordTooLargeException")
_CONFLICT = "CommitFailedException"
_REFUSED_REQUEST = re.compile(r"\(code: 4(?!01|03|08|19|29)\d\d\b")
_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|SQLITE_FULL|not enough space on the disk", re.IGNORECASE
)
_OF_FILES = re.compile(
    r"File name too long|Permission denied|Read-only file system|(Is|Not) a directory|No such file|already exists",
    re.IGNORECASE,
)
_WAITS = re.compile(  # in the names of classes, whatever their package
    r"Time(d)?Out|UnknownHost|NoRouteToHost|^Connect(ion)?|ConnectException$|ConnectionException$|Socket|^SSL|Tls|"
    r"CertPath|Certificate|ValidatorException|Unresolved|NoHttpResponse|ClosedChannel|AsynchronousClose|Communications|"
    r"Transport|Throttl|SlowDown|TooManyRequests|RequestLimitExceeded|ThroughputExceeded|Unauthorized|NotAuthorized|"
    r"AccessDenied|Forbidden|Credential|ExpiredToken|UnrecognizedClient|InvalidSignature|InvalidIdentityToken|"
    r"InternalServ|ServiceUnavailable|ServiceFailure|RESTException|OAuth|"
    r"CommitStateUnknown|UncheckedInterrupted|SdkClientException|AbortedException|SQLTransient|SQLRecoverable|RejectedExecution",
    re.IGNORECASE,
)
_WAITS_TEXT = re.compile(  # in messages
    r"Status Code: (5\d\d|401|403|408|429)\b|\b(HTTP|status|code|error)[ :=]+(5\d\d|429)\b|"
    r"^(5\d\d|429)\b|Service Unavailable|Internal Server Error|Bad Gateway|Gateway Time-?out|Too Many Requests|"
    r"Throttl|Rate exceeded|Slow ?Down|reduce your request rate|TooManyRequests|Expired ?Token|InvalidAccessKeyId|AccessDenied|"
    r"UnrecognizedClient|RequestTimeTooSkewed|"
    r"SQLITE_(BUSY|LOCKED|IOERR|CANTOPEN|PROTOCOL|INTERRUPT)|database is locked|deadlock|could not serialize|Lock wait timeout|"
    r"Access denied for user|authentication failed|too many (clients|connections)|"
    r"terminating connection|connection .*(refused|closed|reset|failed)|"
    r"system is (starting up|shutting down)|recovery mode|"
    r"Connection (reset|refused|closed)|Broken pipe|timed out|Premature end of|stream was reset|GOAWAY",
    re.IGNORECASE,
)
_OF_SERVICES = re.compile(
    r"^(java\.(io|net|nio|sql|util\.concurrent)|javax\.(net|security)|sun\.|com\.sun|java\.security|org\.sqlite|org\.postgresql|"
    r"com\.mysql|org\.mariadb|software\.amazon|com\.amazonaws|org\.apache\.(iceberg|http|hc|kafka|thrift|hadoop)|io\.netty|okhttp|"
    r"com\.google\.cloud|com\.azure)|\.shaded\.|\.thirdparty\."
)
"""The packages of clients and services. Other classes are errors of a program, whatever their messages quote."""
_NEUTRAL = re.compile(
    r"^(java\.(io|util\.concurrent|security)|javax\.security|sun\.|io\.netty|java\.lang\.Interrupted)"
)
"""The packages of exceptions that a client of a service wraps, and whose meaning only the wrapping exception has."""

_PLAN = re.compile(r"(SQLSTATE: \w{5});? '?[A-Z]\w+\b.*")
"""The plan that Spark prints after an analysis that failed: up to hundreds of thousands of characters, which name no cause."""


def meaning(text: str) -> Failure:
    """Return what a failure means, by the text of its exceptions, causes included.

    The innermost exception decides; if it is one of input or output that says nothing, the one around it. Stack frames do not
    count: whatever fails while it writes has Iceberg's classes among them.
    """
    chain = thrown_in(text)
    if _MEMORY.search("\n".join(_messages(text))):
        return Failure.MEMORY
    if any(_LOGIN.search(one.name) for one in chain):
        return Failure.LOGIN
    kind = next((found for found in map(_known, reversed(chain)) if found is not None), Failure.OTHER)
    if kind is Failure.OTHER and any(one.simple == _CONFLICT for one in chain):
        return Failure.CONFLICT
    is_of_kafka = kind is Failure.LAKE and any(_OF_KAFKA.match(one.name) for one in chain)
    return Failure.KAFKA if is_of_kafka else kind


def words(text: str) -> str:
    """Return the innermost exception with its complete message, on one line; with those around it, as long as none has a message.

    Secrets must be masked in `text` before: half of one is no match.
    """
    said: list[str] = []
    for one in reversed(thrown_in(text)):
        said.insert(0, f"{one.name}: {one.message}" if one.message else one.name)
        if one.message:
            break
    line = " ".join(" caused by ".join(said or _messages(text)[-1:] or ["no message"]).split())
    line = _PLAN.sub(r"\1", line)
    left = len(line) - MOST_CHARACTERS
    return line if left <= 0 else f"{line[:MOST_CHARACTERS]} … ({left:,} more characters)"


def thrown_in(text: str) -> list[Thrown]:
    """Return the exceptions in a text of messages and stack traces, the outermost first; without suppressed ones."""
    found: list[Thrown] = []
    for line in _messages(text):
        match = _START.match(line)
        if match is None:
            if found:
                found[-1] = Thrown(found[-1].name, f"{found[-1].message}\n{line}".strip())
            continue
        while match is not None:
            found.append(Thrown(match[1], match[2]))
            match = _INSIDE.match(match[2])
    return found


def _known(one: Thrown) -> Failure | None:
    """Return what one exception says, taken by itself; None if the one around it decides."""
    if _FULL.search(one.message):
        return Failure.DISK
    if one.simple == "ArithmeticException" and "long overflow" in one.message:
        return Failure.TIMESTAMP
    if _REFUSED_REQUEST.search(one.message) and one.simple == "RESTException":
        return Failure.OTHER
    if not _OF_SERVICES.search(one.name):
        return (
            Failure.KAFKA
            if one.simple == "KafkaIllegalStateException" or "Cannot fetch" in one.message
            else Failure.OTHER
        )
    if _OF_KAFKA.match(one.name) or "Cannot fetch" in one.message:
        is_broken = one.simple in _BROKEN_RECORDS or _BROKEN_RECORD.search(one.message)
        return Failure.OTHER if is_broken else Failure.KAFKA
    if _OF_FILES.search(one.message) and _NEUTRAL.match(one.name):
        return Failure.OTHER
    is_named = one.name.startswith("org.apache.iceberg.exceptions.")  # these say it by their class, and quote much
    if _WAITS.search(one.simple) or (not is_named and _WAITS_TEXT.search(one.message)):
        return Failure.LAKE
    return None if _NEUTRAL.match(one.name) else Failure.OTHER


def _messages(text: str) -> list[str]:
    """Return the lines that are not stack frames, nor of suppressed exceptions."""
    return list(_kept(text))


def _kept(text: str) -> Iterator[str]:
    suppressed: int | None = None
    for line in text.splitlines():
        words = line.strip()
        indent = len(line) - len(line.lstrip())
        if words.startswith("Suppressed: "):
            suppressed = indent if suppressed is None else min(suppressed, indent)
        elif suppressed is not None and indent <= suppressed and not _FRAME.match(words):
            suppressed = None
        if suppressed is None and words and not _FRAME.match(words):
            yield words
