"""The KMS key of buckets, secrets, logs and alarms of one environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infra.protection import Protection
from infra.tf import Construct, KmsAlias, KmsKey


class LakeKey(Construct):
    """Rotated every year. Without it no table can be read, so it is kept like the data, and goes a month after it."""

    def __init__(
        self, scope: Construct, name: str, *, alias: str, policy: Mapping[str, Any], protection: Protection
    ) -> None:
        super().__init__(scope, name)
        self._key = KmsKey(
            self,
            "key",
            description=f"{alias}: tables, artifacts, secrets, logs",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            policy=json.dumps(policy),
            lifecycle=protection.lifecycle,
        )
        KmsAlias(self, "alias", name=f"alias/{alias}", target_key_id=self._key.key_id)

    @property
    def arn(self) -> str:
        """The key's ARN, known when it exists."""
        return self._key.arn
