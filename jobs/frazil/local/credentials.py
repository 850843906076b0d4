"""The key pair of a local part, created once for its folder and stored in two files that only the user can read."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from botocore.credentials import Credentials

from frazil.declaration.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFiles:
    """The files that hold a key pair."""

    access_key_id: Path
    secret_access_key: Path

    @classmethod
    def of(cls, home: Path, part: str) -> KeyFiles:
        """Return the paths of a part's files in a `.frazil` folder. The files need not exist."""
        folder = home / "secrets"
        return cls(
            access_key_id=folder / f"{part}-access-key-id", secret_access_key=folder / f"{part}-secret-access-key"
        )

    def make(self) -> None:
        """Create a pair if none exists: stored data may refer to the old one."""
        self.access_key_id.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file, size in ((self.access_key_id, 10), (self.secret_access_key, 20)):
            if not file.exists():
                file.touch(mode=0o600)
                file.write_text(secrets.token_hex(size))

    def credentials(self) -> Credentials:
        """Read the key pair."""
        return Credentials(self.access_key_id.read_text(), self.secret_access_key.read_text())

    def references(self) -> tuple[Secret, Secret]:
        """Return key id and key as an environment refers to them, by file."""
        return Secret(file=str(self.access_key_id)), Secret(file=str(self.secret_access_key))
