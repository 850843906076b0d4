"""Object store: the bucket of releases, documents, desired states and leases, over S3's API.

What it promises rests on S3's conditional writes: a key is created by exactly one writer, and changed only by who has
seen its newest version (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frazil.clients.aws_session import ATTEMPTS, aws_client, aws_session, unanswered
from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import ObjectStore as Place
from frazil.declaration.environment import Environment
from frazil.errors import ObjectDiffers, ObjectStoreUnavailable

_LOST = {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}
_ABSENT = {"NoSuchKey", "404", "NotFound"}


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was read; `version` names exactly this content."""

    data: bytes
    version: str


def s3_client(place: Place | None, *, keys: tuple[str, str] | None = None, **patience: Any) -> Any:
    """Return boto3's client for a store, with short timeouts, or those of `patience` (`aws_client`).

    Raises `ObjectStoreUnavailable` when the shell's AWS settings cannot be used, like a profile that is not there.
    """
    from botocore.exceptions import BotoCoreError

    store = place or Place()
    style = {"addressing_style": "path"} if store.path_style else {}
    region = store.region or ("us-east-1" if store.endpoint else None)
    try:
        session = aws_session(*(keys or ()), region=region)
        return aws_client("s3", session, endpoint_url=store.endpoint, s3=style, **{"answer_seconds": 30.0, **patience})
    except BotoCoreError as error:
        raise ObjectStoreUnavailable(f"{error}", where="S3", do="Look at AWS_PROFILE and the AWS settings") from None


def store_keys(place: Environment, secrets: Secrets) -> tuple[str, str] | None:
    """Return the keys of an environment's object store; None if AWS's default chain has them."""
    store = place.object_store
    if store is None or store.access_key_id is None or store.secret_access_key is None:
        return None
    return secrets.read(store.access_key_id), secrets.read(store.secret_access_key)


class ObjectStore:
    """One bucket. Every method raises `ObjectStoreUnavailable` when S3 refuses or does not answer."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self.bucket = client, bucket

    @classmethod
    def of(cls, place: Environment, secrets: Secrets, bucket: str, **patience: Any) -> ObjectStore:
        """Return a bucket of an environment. `patience` are timeouts and attempts of `s3_client`."""
        return cls(s3_client(place.object_store, keys=store_keys(place, secrets), **patience), bucket)

    def exists(self) -> bool:
        """Return whether the bucket exists."""
        try:
            self._ask("", "head_bucket")
        except _Absent:
            return False
        return True

    def read(self, key: str) -> Stored | None:
        """Return an object; None if it does not exist."""
        try:
            with self._translated_errors(key):
                answer = self._client.get_object(Bucket=self.bucket, Key=key)
                return Stored(answer["Body"].read(), answer["ETag"])
        except _Absent:
            return None

    def keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys with this prefix, sorted."""
        return tuple(sorted(held["Key"] for held in self._listed(prefix, "Contents")))

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the names of the folders directly below a prefix that ends with a slash, sorted."""
        found = self._listed(prefix, "CommonPrefixes", Delimiter="/")
        return tuple(sorted(each["Prefix"].removeprefix(prefix).rstrip("/") for each in found))

    def put_once(self, key: str, source: Path | bytes) -> bool:
        """Write what is never overwritten; whether this call wrote it. The same bytes again change nothing.

        Raises `ObjectDiffers` if the key is there with other bytes.
        """
        sha256 = _sha256(source)
        for _ in range(ATTEMPTS):
            try:
                self._put(key, source, sha256, {"IfNoneMatch": "*"})
                return True
            except _Lost:
                held = self._checksum(key)
            if held == sha256:
                return False
            if held is not None:  # None: another writer's put had only begun, and failed
                do = "Nothing was overwritten. Keys name their content: look who wrote this one"
                raise ObjectDiffers("the key is there with other content", where=f"s3://{self.bucket}/{key}", do=do)
        raise ObjectStoreUnavailable(
            f"the key could not be written in {ATTEMPTS} attempts", where=f"s3://{self.bucket}/{key}"
        )

    def put(self, key: str, data: bytes) -> str:
        """Write an object, whether it exists or not, and return its version."""
        return self._put(key, data, _sha256(data), {})

    def delete(self, key: str) -> None:
        """Delete an object; one that does not exist is deleted, too."""
        self._ask(key, "delete_object", Key=key)

    def swap(self, key: str, data: bytes, *, version: str | None) -> str | None:
        """Replace the version that was read (None: there was no object), and return the new one's; None if it is newer by now.

        After a lost answer, the content decides: `data` must differ from what all others write.
        """
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        try:
            return self._put(key, data, _sha256(data), condition)
        except (_Lost, _Absent):  # S3 answers 404 when the object to be replaced is gone
            now = self.read(key)
            return now.version if now is not None and now.data == data else None

    def _put(self, key: str, source: Path | bytes, sha256: str, condition: Mapping[str, str]) -> str:
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        request = {"Key": key, **condition, "ChecksumSHA256": checksum, "Metadata": {"sha256": sha256}}
        if isinstance(source, bytes):
            return str(self._ask(key, "put_object", Body=source, **request)["ETag"])
        with self._translated_errors(key), source.open("rb") as body:
            return str(self._ask(key, "put_object", Body=body, **request)["ETag"])

    def _checksum(self, key: str) -> str | None:
        """Return the SHA-256 of the object; None if it does not exist. Objects of other writers are read to compute it."""
        try:
            found = self._ask(key, "head_object", Key=key, ChecksumMode="ENABLED")
        except _Absent:
            return None
        if found.get("ChecksumSHA256") and found.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
            return base64.b64decode(found["ChecksumSHA256"]).hex()
        held = self.read(key)
        return _sha256(held.data) if held is not None else None

    def _ask(self, key: str, operation: str, **request: Any) -> Any:
        with self._translated_errors(key):
            return getattr(self._client, operation)(Bucket=self.bucket, **request)

    def _listed(self, prefix: str, member: str, **request: Any) -> list[Any]:
        with self._translated_errors(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix, **request)
            return [each for page in pages for each in page.get(member, ())]

    @contextmanager
    def _translated_errors(self, key: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        where = f"s3://{self.bucket}/{key}"
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            if code in _LOST:
                raise _Lost from None
            if code in _ABSENT:
                raise _Absent from None
            raise ObjectStoreUnavailable(f"S3 refused ({code})", where=where, do=_REMEDY) from None
        except (BotoCoreError, OSError) as error:
            what, do = unanswered("S3", error)
            raise ObjectStoreUnavailable(what, where=where, do=do) from None


_REMEDY = "Is the bucket there, and is our role allowed to read and write these keys?"


class _Lost(Exception):
    """A condition of a write did not hold."""


class _Absent(Exception):
    """There is no such object."""


def _sha256(source: Path | bytes) -> str:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
