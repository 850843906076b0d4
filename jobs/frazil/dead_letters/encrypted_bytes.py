"""Encrypt the bytes of dead letters with a key of a secret: AES-256-GCM, https://www.rfc-editor.org/rfc/rfc5116."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from frazil.declaration import Pipeline, Secret
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MARK = b"frazil-gcm-1:"
"""Encrypted bytes begin with it. A nonce of 12 bytes, the ciphertext, and a tag of 16 bytes follow."""
_NONCE, _SHORTEST = 12, 16
_KEY, _PLAIN_KEY, _PLAIN_HEADERS = "_frazil_letter_secret", "_frazil_plain_key", "_frazil_plain_headers"


def key_of(secret: str) -> bytes:
    """Return the key of a secret. Raises `InvalidInput` for a secret of fewer than 16 characters."""
    if len(secret) < _SHORTEST:
        said = f"the secret of dead letters has fewer than {_SHORTEST} characters"
        raise InvalidInput(said, where="shape.dead_letters", do="Write a longer one, such as 32 random bytes as hex")
    return hmac.new(secret.encode(), b"frazil dead letters", hashlib.sha256).digest()


@dataclass(frozen=True, slots=True)
class Encryption:
    """Encrypts the bytes of rejected records as Kafka holds them, each part bound to its record's place."""

    key: bytes = field(repr=False)

    def prepared(self, records: DataFrame) -> DataFrame:
        """Return records with their key and headers under names that no mask changes.

        The secret is a value of a relation, so that the text of a plan has none.
        """
        from pyspark.sql import functions as F

        secret = records.sparkSession.createDataFrame([(self.key,)], "secret binary")
        return records.withColumns({_KEY: secret.scalar(), _PLAIN_KEY: F.col("key"), _PLAIN_HEADERS: F.col("headers")})

    def held(self, value: Column) -> dict[str, Column]:
        """Return what a dead letter of prepared records holds; `value` is the record's."""
        from pyspark.sql import functions as F

        def header(one: Column) -> Column:
            name = F.concat(F.lit("header "), one["key"])
            return F.struct(one["key"].alias("key"), _encrypted(one["value"], name).alias("value"))

        return {
            "key": _encrypted(F.col(_PLAIN_KEY), F.lit("key")),
            "value": _encrypted(value, F.lit("value")),
            "headers": F.transform(_PLAIN_HEADERS, header),
        }


def encryption(pipeline: Pipeline, read: Callable[[Secret], str]) -> Encryption | None:
    """Return the declared encryption of dead letters; None if none is declared. `read` gives the value of a secret."""
    declared = pipeline.shape.dead_letters
    return None if declared is None else Encryption(key_of(read(declared.secret)))


def is_encrypted(data: bytes | None) -> bool:
    """Return whether bytes of a dead letter are encrypted."""
    return data is not None and data.startswith(MARK)


def decrypted(data: bytes | None, key: bytes, place: Mapping[str, object], part: str) -> bytes | None:
    """Return bytes of a dead letter as Kafka held them; plain ones as they are. `part` is `key`, `value` or `header NAME`.

    `place` has topic, partition and offset. Raises `InvalidInput` if they were encrypted with another secret.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if data is None or not is_encrypted(data):
        return data
    nonce, rest = data[len(MARK) : len(MARK) + _NONCE], data[len(MARK) + _NONCE :]
    where = f"{place['topic']}, partition {place['partition']}, offset {place['offset']}"
    try:
        return AESGCM(key).decrypt(nonce, rest, f"{where}, {part}".encode())
    except InvalidTag:
        what = f"the {part} of the dead letter is encrypted with another secret, or was changed"
        raise InvalidInput(what, where=where, do="Declare the secret of that time in shape.dead_letters") from None


def decrypted_columns(letters: DataFrame, key: bytes) -> DataFrame:
    """Return dead letters with key, value and headers as Kafka held them; what another key encrypted stays as it is."""
    from pyspark.sql import functions as F

    secret = letters.sparkSession.createDataFrame([(key,)], "secret binary")
    letters = letters.withColumn(_KEY, secret.scalar())

    def header(one: Column) -> Column:
        name = F.concat(F.lit("header "), one["key"])
        return F.struct(one["key"].alias("key"), _plain(one["value"], name).alias("value"))

    plain = {"key": _plain(F.col("key"), F.lit("key")), "value": _plain(F.col("value"), F.lit("value"))}
    return letters.withColumns({**plain, "headers": F.transform("headers", header)}).drop(_KEY)


def _plain(data: Column, part: Column) -> Column:
    """Return bytes that `_encrypted` made as they were, and all others as they are."""
    from pyspark.sql import functions as F

    place = F.format_string("%s, partition %s, offset %s, %s", "topic", "partition", "offset", part).cast("binary")
    rest = F.substring(data, len(MARK) + 1, 2**31 - 1)
    made = F.try_aes_decrypt(rest, F.col(_KEY), F.lit("GCM"), F.lit("DEFAULT"), place)
    return F.when(F.startswith(data, F.lit(MARK)), F.coalesce(made, data)).otherwise(data)


def _encrypted(data: Column, part: Column) -> Column:
    from pyspark.sql import functions as F

    place = F.format_string("%s, partition %s, offset %s, %s", "topic", "partition", "offset", part)
    made = F.aes_encrypt(data, F.col(_KEY), F.lit("GCM"), F.lit("DEFAULT"), F.lit(b""), place.cast("binary"))
    return F.when(data.isNotNull(), F.concat(F.lit(MARK), made))
