"""A key pair of a local part: made once for its folder, kept in two files that only the user can read."""

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
        """Name the files of a part in a `.frazil` folder; they need not be there."""
        folder = home / "secrets"
        return cls(
            access_key_id=folder / f"{part}-access-key-id", secret_access_key=folder / f"{part}-secret-access-key"
        )

    def make(self) -> None:
        """Make a pair if there is none: what is stored may know the old one."""
        self.access_key_id.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file, size in ((self.access_key_id, 10), (self.secret_access_key, 20)):
            if not file.exists():
                file.touch(mode=0o600)
                file.write_text(secrets.token_hex(size))

    def credentials(self) -> Credentials:
        """Read the key pair."""
        return Credentials(self.access_key_id.read_text(), self.secret_access_key.read_text())

    def references(self) -> tuple[Secret, Secret]:
        """Key id and key as an environment names them, by file."""
        return Secret(file=str(self.access_key_id)), Secret(file=str(self.secret_access_key))
