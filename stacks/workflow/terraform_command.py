"""The `terraform` command in the folder of one stack. Its output can hold secrets, so callers show headings only."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stacks.workflow.provider_lock import NAME, lock_stack

PLAN = "plan"
"""The name of a saved plan in a stack's folder."""
Planned = tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]
"""Terraform's ended process, and the plan as JSON if it exists."""
_ERROR = re.compile(r"^(?:[│|╷]\s*)?Error: (.+)$", re.MULTILINE)


class NotPlanned(Exception):
    """Synthesis or Terraform failed. The text is its output."""


def program(settings: Mapping[str, str]) -> str:
    """Return the path of Terraform's program on the PATH. Raises `NotPlanned` if there is none."""
    found = shutil.which("terraform", path=settings.get("PATH"))
    if found is None:
        raise NotPlanned("terraform is not installed. Install version 1.10 or newer")
    return found


def error_headings(stderr: str) -> str:
    """Return the headings of Terraform's errors, without their details."""
    return "; ".join(dict.fromkeys(_ERROR.findall(stderr)))


def errors(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the text of a command that failed."""
    return (ended.stderr or ended.stdout).strip()


class TerraformCommand:
    """The command in one folder. `settings` are the variables of its process."""

    def __init__(self, folder: Path, settings: Mapping[str, str], program: str) -> None:
        self.folder, self._program = folder, program
        # Terraform's logs would contain the plan's values, and outlive the folder.
        quiet = {name: value for name, value in settings.items() if not name.startswith("TF_LOG")}
        self._settings = {**quiet, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", **_provider_cache(folder, quiet)}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command and return its result, whatever its exit code."""
        return subprocess.run(
            [self._program, *arguments],
            cwd=self.folder,
            env=self._settings,
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, *arguments: str) -> str:
        """Run a command and return its output. Raises `NotPlanned` if it fails."""
        ended = self(*arguments)
        if ended.returncode:
            raise NotPlanned(f"{self.folder.name}: {errors(ended)}")
        return ended.stdout

    def initialised(self) -> None:
        """Fetch the providers that the lock of the working folder allows, and read the state. Raises `NotPlanned`."""
        stack = json.loads((self.folder / "cdk.tf.json").read_text("utf-8"))
        is_locked = lock_stack(self.folder, stack, Path.cwd() / NAME)
        self.must("init", "-input=false", "-no-color", *(["-lockfile=readonly"] if is_locked else []))

    def planned(self) -> Planned:
        """Plan. Return the result, and the plan as JSON if it exists. The JSON is not written to a file."""
        (self.folder / PLAN).unlink(missing_ok=True)
        ended = self("plan", "-input=false", "-no-color", "-lock=false", "-detailed-exitcode", f"-out={PLAN}")
        has_plan = (self.folder / PLAN).is_file()
        return ended, json.loads(self.must("show", "-json", PLAN)) if has_plan else None

    def state(self) -> dict[str, Any]:
        """Return the state, which holds secrets; empty before the first apply. Raises `NotPlanned`."""
        read: dict[str, Any] = json.loads(self.must("state", "pull") or "{}")
        return read

    def known_values(self) -> dict[str, Any]:
        """Return the values of the state with their marks, in the form of a plan; empty if the state cannot be read."""
        try:
            return {"prior_state": json.loads(self("show", "-json").stdout)}
        except ValueError:
            return {}

    def outputs(self) -> dict[str, object]:
        """Return the outputs that are no secrets. Raises `NotPlanned`."""
        read = json.loads(self.must("output", "-json"))
        return {name: each["value"] for name, each in read.items() if not each["sensitive"]}

    def applied(self) -> tuple[int, str]:
        """Apply the saved plan. Return the exit code and the headings of the errors.

        If this process is asked to end, Terraform is asked too, and this call waits until Terraform has written the state.
        """
        output = self.folder / "apply.log"
        with output.open("w+b") as log:
            with _signals_kept() as kept:  # one that comes before Popen has returned would leave Terraform alone
                process = subprocess.Popen(
                    [self._program, "apply", "-input=false", "-no-color", PLAN],
                    cwd=self.folder,
                    env=self._settings,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # so that only this process gets the signals of a terminal
                )
            try:
                for number in kept:
                    signal.raise_signal(number)
                code = process.wait()
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.wait()
                raise
        return code, error_headings(output.read_text("utf-8", errors="replace"))


def write_outputs(file: Path, folders: Mapping[str, Path], settings: Mapping[str, str], program: str) -> None:
    """Write the outputs of stacks that are no secrets, as JSON by stack. `folders` are those of the stacks, by name."""
    commands = {name: TerraformCommand(folder, settings, program) for name, folder in folders.items()}
    file.write_text(json.dumps({name: command.outputs() for name, command in commands.items()}), "utf-8")


@contextmanager
def _signals_kept() -> Iterator[list[int]]:
    """Keep the signals that ask this process to end, and give their numbers. Only the main thread handles signals."""
    kept: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield kept
        return
    ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {number: signal.signal(number, lambda found, frame: kept.append(found)) for number in ends}
    try:
        yield kept
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _provider_cache(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Share one download of the providers between all stacks, unless the settings already configure a cache."""
    if settings.keys() & {"TF_PLUGIN_CACHE_DIR", "TF_CLI_CONFIG_FILE"}:
        return {}
    shared = folder.parent.parent.parent / "providers"
    shared.mkdir(exist_ok=True)
    return {"TF_PLUGIN_CACHE_DIR": str(shared), "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE": "1"}
