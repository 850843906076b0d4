"""The settings of Terraform on this machine, with a stand-in for Confluent's provider that is built from source.

The first build takes minutes. The result is stored in the
user's cache, named by a digest of its sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frazil.errors import LocalPartFailed
from frazil.local.services import LocalServices
from frazil.local.toolchain.jars import cache_folder
from tests.standin.aws.launch import endpoint_of

SOURCE = Path(__file__).with_name("provider")
BUILD_FLAGS = ("-trimpath", "-ldflags=-s -w")
_BUILD_SECONDS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A provider's stand-in, which Terraform uses as the provider of that name and version."""

    source: Path
    """The folder of its Go module."""
    provider: str
    """`namespace/name`."""
    version: str

    def mirror(self) -> Path:
        """Return a mirror of providers that contains the stand-in. Builds it if it does not exist.

        Raises `LocalPartFailed` if Go is missing, or with Go's message if the build fails.
        """
        go = _program("go")
        folder = cache_folder() / "terraform" / self._digest(go)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(prefix=".build-", dir=folder.parent) as temporary:
                    self._build(go, Path(temporary, "mirror") / self._place(go))
                    Path(temporary, "mirror").rename(folder)
        return folder

    def _digest(self, go: str) -> str:
        digest = hashlib.sha256(f"{self.provider} {self.version} {BUILD_FLAGS} {_output([go, 'version'])}".encode())
        for file in sorted([*self.source.glob("*.go"), *self.source.glob("go.*")]):
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
        return digest.hexdigest()[:16]

    def _place(self, go: str) -> Path:
        """Return the stand-in's path in a mirror."""
        system = "_".join(_output([go, "env", "GOOS", "GOARCH"]).split())
        name = f"terraform-provider-{self.provider.partition('/')[2]}_v{self.version}"
        return Path("registry.terraform.io", self.provider, self.version, system, name)

    def _build(self, go: str, program: Path) -> None:
        program.parent.mkdir(parents=True)
        ended = subprocess.run(
            [go, "build", *BUILD_FLAGS, "-o", str(program), "."],
            cwd=self.source,
            env={**os.environ, "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
        if ended.returncode:
            raise LocalPartFailed(f"the stand-in could not be built:\n{ended.stderr[-2000:]}", where=str(self.source))


def write_settings(file: Path, stand_in: StandIn, *, mirrors: Sequence[Path] = ()) -> None:
    """Write Terraform's settings: the stand-in comes from its mirror, all other providers from `mirrors`.

    Without mirrors, Terraform downloads the others itself. TF_CLI_CONFIG_FILE names the file.
    """
    lines = [_mirror(stand_in.mirror(), f'include = ["{stand_in.provider}"]')]
    lines += [_mirror(mirror) for mirror in mirrors]
    if not mirrors:
        lines.append(f'  direct {{\n    exclude = ["{stand_in.provider}"]\n  }}')
    file.write_text("disable_checkpoint = true\nprovider_installation {\n" + "\n".join(lines) + "\n}\n")


def stand_in_settings(world: LocalServices) -> dict[str, str]:
    """Return the variables with which the stand-in finds its organization, a file of the folder, and its servers.

    Broker, registry and the local AWS must run.
    """
    return {
        "CONFLUENT_STANDIN_STATE": str(world.home / "confluent.json"),
        "CONFLUENT_STANDIN_BOOTSTRAP": world.bootstrap,
        "CONFLUENT_STANDIN_REGISTRY": world.registry_url,
        "CONFLUENT_STANDIN_IAM": endpoint_of(world.home),
    }


def _mirror(folder: Path, *more: str) -> str:
    inner = "".join(f"    {line}\n" for line in (f"path = {json.dumps(str(folder))}", *more))
    return f"  filesystem_mirror {{\n{inner}  }}"


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise LocalPartFailed(f"{name} is not installed", where="PATH", do=f"Install {name}")
    return found


def _output(command: Sequence[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise LocalPartFailed(f"{Path(command[0]).name} failed: {ended.stderr[-500:]}", where=" ".join(command[1:3]))
    return ended.stdout
