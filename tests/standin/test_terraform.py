"""Where Terraform finds its providers. Go and Terraform are programs that note how they are called; real ones: tests/stacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from frazil.errors import LocalPartFailed
from frazil.local.services import LocalServices, Part
from tests.standin.terraform import StandIn, stand_in_settings, write_settings

GO = """#!/bin/sh
case "$1" in
version) echo go1 ;;
env) printf 'linux\\namd64\\n' ;;
build) echo "$@" >> "$CALLS"; grep -q broken main.go && { echo 'main.go:1: no' >&2; exit 1; }; echo built > "$5" ;;
esac
"""
TERRAFORM = """#!/bin/sh
[ "$1" = version ] && { echo v1; exit; }
echo '└── provider[registry.example.com/acme/cloud] 1.2.3'
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    for name, script in (("go", GO), ("terraform", TERRAFORM)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(script)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "main.go").write_text("package main\n")
    return StandIn(source=tmp_path / "source", provider="acme/cloud", version="1.2.3")


@pytest.fixture
def builds(tmp_path: Path) -> Callable[[], int]:
    """Count the builds."""
    return lambda: len((tmp_path / "calls").read_text().splitlines())


def test_it_is_built_once_and_again_when_its_source_has_changed(stand_in: StandIn, builds: Callable[[], int]) -> None:
    first = stand_in.mirror()
    assert stand_in.mirror() == first
    assert builds() == 1
    (stand_in.source / "main.go").write_text("package main // other\n")
    assert stand_in.mirror() != first
    assert builds() == 2


def test_a_mirror_has_it_where_terraform_says_that_it_is_from(stand_in: StandIn) -> None:
    [program] = [file for file in stand_in.mirror().rglob("*") if file.is_file()]
    assert program.relative_to(stand_in.mirror()) == Path(
        "registry.example.com/acme/cloud/1.2.3/linux_amd64/terraform-provider-cloud_v1.2.3"
    )


def test_what_cannot_be_built_is_told_and_not_kept(stand_in: StandIn) -> None:
    (stand_in.source / "main.go").write_text("broken\n")
    for _ in range(2):
        with pytest.raises(LocalPartFailed, match="main.go:1: no"):
            stand_in.mirror()


def test_a_program_that_is_missing_is_told(stand_in: StandIn, tmp_path: Path) -> None:
    (tmp_path / "bin" / "go").unlink()
    with pytest.raises(LocalPartFailed, match="go is not installed"):
        stand_in.mirror()


def test_the_stand_in_is_from_its_mirror_only_and_all_else_from_others(stand_in: StandIn, tmp_path: Path) -> None:
    file = tmp_path / "rc"
    write_settings(file, stand_in, mirrors=[tmp_path / "others"])
    told = file.read_text()
    assert told.count("filesystem_mirror {") == 2
    assert 'include = ["acme/cloud"]' in told
    assert "direct" not in told
    write_settings(file, stand_in)
    assert 'direct {\n    exclude = ["acme/cloud"]' in file.read_text()


def test_the_stand_in_is_told_where_the_world_is(tmp_path: Path) -> None:
    addresses = {
        Part.KAFKA: {"bootstrap": "127.0.0.1:9"},
        Part.REGISTRY: {"url": "http://127.0.0.1:8"},
    }
    (tmp_path / "aws").mkdir()
    (tmp_path / "aws" / "endpoint").write_text("http://127.0.0.1:7")
    told = stand_in_settings(LocalServices(home=tmp_path, addresses=addresses))
    assert told == {
        "CONFLUENT_STANDIN_STATE": str(tmp_path / "confluent.json"),
        "CONFLUENT_STANDIN_BOOTSTRAP": "127.0.0.1:9",
        "CONFLUENT_STANDIN_REGISTRY": "http://127.0.0.1:8",
        "CONFLUENT_STANDIN_IAM": "http://127.0.0.1:7",
    }
