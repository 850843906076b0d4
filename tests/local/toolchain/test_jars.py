import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frazil.errors import JarMismatch, JarsUnavailable
from frazil.local.toolchain import jars as module
from frazil.local.toolchain.jars import EVERYWHERE, copied, jars, lock_file, locked, shown
from frazil.local.toolchain.maven import Artifact

Fetched = Callable[..., tuple[Path, ...]]
CONTENT = {"one": b"the first jar", "two": b"the second jar"}


class Repository:
    """Hands out what it holds, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.holds = dict(CONTENT)
        self.asked: list[list[str]] = []

    def fetch(self, artifacts: Sequence[Artifact], folder: Path, _: Mapping[str, str]) -> list[Path]:
        self.asked.append([artifact.name for artifact in artifacts])
        files = [folder / artifact.file_name for artifact in artifacts]
        for artifact, file in zip(artifacts, files, strict=True):
            if artifact.name not in self.holds:
                raise JarsUnavailable(f"{artifact} could not be fetched")
            file.write_bytes(self.holds[artifact.name])
        return files


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Repository:
    repository = Repository()
    monkeypatch.setattr(module, "fetch", repository.fetch)
    monkeypatch.delenv("FRAZIL_JARS", raising=False)
    return repository


@pytest.fixture
def fetched(tmp_path: Path) -> Fetched:
    lock = tmp_path / "jars.lock"
    artifacts = [
        {
            "group": "org.example",
            "name": name,
            "version": "1.0",
            "type": "jar",
            "sha256": hashlib.sha256(content).hexdigest(),
            "licence": "Apache-2.0",
            "for": ["spark"],
        }
        for name, content in CONTENT.items()
    ]
    lock.write_text(json.dumps({"version": 1, "artifacts": artifacts}))
    return lambda **options: jars("spark", lock=lock, cache=tmp_path / "cache", **options)


def test_what_is_missing_is_fetched(repository: Repository, fetched: Fetched) -> None:
    assert [file.read_bytes() for file in fetched()] == list(CONTENT.values())
    assert repository.asked == [["one", "two"]]


def test_what_was_checked_is_not_read_again(
    repository: Repository, fetched: Fetched, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetched()
    monkeypatch.setattr(module, "_sha256", lambda _: pytest.fail("a jar was read"))
    assert fetched() == first


def test_a_removed_jar_is_fetched_alone(repository: Repository, fetched: Fetched) -> None:
    fetched()[1].unlink()
    assert fetched()[1].read_bytes() == CONTENT["two"]
    assert repository.asked[1:] == [["two"]]


def test_a_corrupt_jar_is_fetched_again(repository: Repository, fetched: Fetched) -> None:
    fetched()[0].write_bytes(b"cut o")
    assert fetched()[0].read_bytes() == CONTENT["one"]
    assert repository.asked[1:] == [["one"]]


def test_a_jar_that_was_only_touched_is_kept(repository: Repository, fetched: Fetched) -> None:
    os.utime(fetched()[0], ns=(1, 1))
    fetched()
    assert len(repository.asked) == 1


def test_a_corrupt_jar_of_the_same_size_and_time_is_found_by_checking_anew(
    repository: Repository, fetched: Fetched
) -> None:
    jar = fetched()[0]
    facts = jar.stat()
    jar.write_bytes(jar.read_bytes().upper())
    os.utime(jar, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert fetched(recheck=True)[0].read_bytes() == CONTENT["one"]


def test_a_jar_with_another_hash_is_refused_and_nothing_is_kept(
    repository: Repository, fetched: Fetched, tmp_path: Path
) -> None:
    repository.holds["two"] = b"somebody else's jar"
    with pytest.raises(JarMismatch, match=r"org\.example:two:1\.0: its sha256 is [0-9a-f]{64}, the lock says"):
        fetched()
    assert list((tmp_path / "cache").rglob("*.jar")) == []


def test_a_failed_fetch_leaves_what_was_there(repository: Repository, fetched: Fetched, tmp_path: Path) -> None:
    fetched()[1].unlink()
    del repository.holds["two"]
    with pytest.raises(JarsUnavailable, match=r"org\.example:two:1\.0 could not be fetched"):
        fetched()
    assert [file.name for file in (tmp_path / "cache").rglob("*.jar")] == ["one-1.0.jar"]
    assert list((tmp_path / "cache" / "jars").glob(".fetch-*")) == []


def test_several_at_once_fetch_once(repository: Repository, fetched: Fetched) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        results = [each.result() for each in [pool.submit(fetched) for _ in range(8)]]
    assert len(set(results)) == 1
    assert repository.asked == [["one", "two"]]


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all jars by their file names, which `FRAZIL_JARS` names."""
    folder = tmp_path / "offline"
    folder.mkdir()
    for name, content in CONTENT.items():
        (folder / f"{name}-1.0.jar").write_bytes(content)
    monkeypatch.setenv("FRAZIL_JARS", str(folder))
    return folder


def test_a_folder_of_jars_is_used_in_place_and_nothing_is_fetched(
    repository: Repository, fetched: Fetched, offline: Path
) -> None:
    assert fetched() == (offline / "one-1.0.jar", offline / "two-1.0.jar")
    assert repository.asked == []


def test_a_folder_without_a_jar_names_the_jar_and_the_command_that_brings_it(
    repository: Repository, fetched: Fetched, offline: Path
) -> None:
    (offline / "two-1.0.jar").unlink()
    with pytest.raises(
        JarsUnavailable, match=r"1 of 2 jars are not in the folder: two-1\.0\.jar.*frazil local jars --out"
    ):
        fetched()
    assert repository.asked == []


def test_a_folder_with_another_file_of_that_name_is_refused(
    repository: Repository, fetched: Fetched, offline: Path
) -> None:
    fetched()
    (offline / "two-1.0.jar").write_bytes(b"the Second jar")
    with pytest.raises(JarMismatch, match=r"the sha256 of two-1\.0\.jar is [0-9a-f]{64}, the lock has"):
        fetched()
    assert repository.asked == []


def test_a_copy_of_the_jars_is_a_folder_for_a_machine_without_a_network(
    repository: Repository,
    fetched: Fetched,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies = copied(fetched(), tmp_path / "new" / "folder")
    assert copied(copies, tmp_path / "new" / "folder") == copies
    monkeypatch.setenv("FRAZIL_JARS", str(tmp_path / "new" / "folder"))
    assert fetched() == copies
    assert sorted(file.name for file in (tmp_path / "new" / "folder").iterdir()) == ["one-1.0.jar", "two-1.0.jar"]


def test_an_unknown_purpose_is_an_error() -> None:
    with pytest.raises(JarsUnavailable, match="nothing is locked for 'flink'"):
        jars("flink")


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"version": 2, "artifacts": []}', "version 2, this release reads 1"), (None, "the lock cannot be read")],
)
def test_a_lock_that_cannot_be_read_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "jars.lock").write_text(text)
    with pytest.raises(JarsUnavailable, match=said):
        locked(tmp_path / "jars.lock")


def test_the_lock_names_each_file_once_with_hash_and_licence() -> None:
    artifacts = locked(lock_file())
    assert len({artifact.path for artifact in artifacts}) == len(artifacts)
    assert len({artifact.file_name for artifact in artifacts}) == len(artifacts)  # one folder holds them all
    assert all(re.fullmatch("[0-9a-f]{64}", artifact.sha256) and artifact.licence for artifact in artifacts)
    assert {purpose for artifact in artifacts for purpose in artifact.purposes} == {
        *EVERYWHERE,
        "postgres-linux-amd64",
        "postgres-darwin-amd64",
    }


def test_a_version_that_two_purposes_need_is_the_same() -> None:
    """The worker and the broker share a machine's cache, and clients of one version."""
    artifacts = [a for a in locked(lock_file()) if {"kafka", "connect"} & set(a.purposes)]
    assert len({(artifact.group, artifact.name) for artifact in artifacts}) == len(artifacts)


def test_the_lock_holds_no_address() -> None:
    assert "://" not in lock_file().read_text()


@pytest.mark.e2e
def test_the_jars_of_spark_are_those_of_the_lock() -> None:
    wanted = [(a.sha256, a.size_bytes) for a in locked(lock_file()) if "spark" in a.purposes]
    contents = [file.read_bytes() for file in jars("spark")]
    assert [(hashlib.sha256(content).hexdigest(), len(content)) for content in contents] == wanted


def artifacts(*sizes: int) -> list[Artifact]:
    facts = {"group": "g", "version": "1", "type": "jar", "sha256": "", "licence": "MIT"}
    return [Artifact(name=f"a{n}", purposes=("x",), size_bytes=size, **facts) for n, size in enumerate(sizes)]


def test_a_log_has_two_lines_and_no_control_characters(tmp_path: Path) -> None:
    log = io.StringIO()
    with shown(artifacts(2_000_000, 500_000), tmp_path, log):
        assert log.getvalue() == "fetching 2 jars, 2.5 MB; they are kept for later runs\n"
    assert log.getvalue().splitlines()[1:] == ["fetched 2 jars in 0 s"]


def test_a_fetch_that_fails_is_not_reported_as_done(tmp_path: Path) -> None:
    log = io.StringIO()
    with pytest.raises(OSError, match="no network"), shown(artifacts(1, 1), tmp_path, log):
        raise OSError("no network")
    assert "fetched" not in log.getvalue()
