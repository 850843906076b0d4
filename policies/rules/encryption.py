"""The rule about data that are sent unencrypted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from policies.resource_values import Facts
from policies.resources import Finding, Reviewed

_OURSELVES = {"127.0.0.1", "::1", "localhost"}


def in_the_clear(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report REST interfaces of Kafka and the registry over plain HTTP: each request contains credentials.

    Also reports the addresses in jobs' documents: a broker without TLS, a registry at http://.
    """
    for each in reviewed.resources:
        for name, value in each.values.items():
            if name.endswith("endpoint") and _is_plain(value):
                yield Finding("in_the_clear", each.address, f"{name} is plain HTTP", "Use https://")
    for document in reviewed.documents:
        where = f"environment {document.get('name', '')}".strip()
        kafka: Mapping[str, Any] = document.get("kafka") or {}
        hosts = {broker.rpartition(":")[0] for broker in str(kafka.get("bootstrap", "")).split(",")}
        if kafka and kafka.get("security", "PLAINTEXT") == "PLAINTEXT" and not hosts <= _OURSELVES:
            what, do = "records come from Kafka without TLS", "Set security to SASL_SSL or SSL"
            yield Finding("in_the_clear", where, what, do)
        if _is_plain((document.get("registry") or {}).get("url")):
            yield Finding("in_the_clear", where, "requests to the registry use plain HTTP", "Use https://")
        for part in ("kafka", "registry"):
            if _is_plain(((document.get(part) or {}).get("oauth") or {}).get("token_endpoint")):
                yield Finding("in_the_clear", where, f"{part}.oauth sends its secret over plain HTTP", "Use https://")


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("http://") and urlsplit(value).hostname not in _OURSELVES
