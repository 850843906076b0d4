"""The `terraform` command in the folder of one stack. Its output can hold secrets, so callers show headings only.

Of a stack from another checkout nothing of the output is shown. Whoever wrote the stack can carry a value into an error, in a
spelling that no mask knows, and both a review and the log of its job are public.
"""

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

from stacks.provider_lock import NAME, lock_stack

PLAN = "plan"
"""The name of a saved plan in a stack's folder."""
Planned = tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]
"""How Terraform ended, and the plan as JSON if it exists."""
NOT_SHOWN = (
    "Their text is in no public place, as the stack is of another checkout. Read the change, check it out, and run "
    "`frazil deploy plan` there"
)
"""Where a person finds the errors of a stack from another checkout."""
_PLACE = re.compile(r"\b(?:with |in resource\.|in (?=data\.))((?:data\.)?[a-z0-9_]+\.[A-Za-z_][A-Za-z0-9_-]*)")
_MOST_PLACES = 10
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


def error_places(stderr: str, stack: Mapping[str, Any]) -> str:
    """Return the addresses of a stack's blocks that Terraform's errors name, and where the errors are found."""
    blocks = {
        f"{'data.' if section == 'data' else ''}{kind}.{name}"
        for section in ("data", "resource")
        for kind, named in stack.get(section, {}).items()
        for name in named
    }
    named = sorted(blocks & {*_PLACE.findall(stderr)})
    more = f" and {len(named) - _MOST_PLACES} more" if len(named) > _MOST_PLACES else ""
    said = f"its errors are at {', '.join(named[:_MOST_PLACES])}{more}" if named else "its errors name no block"
    return f"{said}. {NOT_SHOWN}"


class TerraformCommand:
    """The command in one folder. `settings` are the variables of its process.

    `is_foreign` says that the stack is of another checkout.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], program: str, *, is_foreign: bool = False) -> None:
        self.folder, self.is_foreign, self._program = folder, is_foreign, program
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
            raise NotPlanned(f"{self.folder.name}: {self.errors(ended)}")
        return ended.stdout

    def errors(self, ended: subprocess.CompletedProcess[str]) -> str:
        """Return the text of a command that failed; of a stack from another checkout, only the addresses in it."""
        if self.is_foreign:
            return f"Terraform failed, and {self.headings(ended)}"
        return (ended.stderr or ended.stdout).strip()

    def headings(self, ended: subprocess.CompletedProcess[str]) -> str:
        """Return the headings of a command's errors; of a stack from another checkout, only the addresses in them."""
        return error_places(ended.stderr, self._stack()) if self.is_foreign else error_headings(ended.stderr)

    def _stack(self) -> dict[str, Any]:
        stack: dict[str, Any] = json.loads((self.folder / "cdk.tf.json").read_text("utf-8"))
        return stack

    def initialised(self) -> None:
        """Fetch the providers that the lock of the working folder allows, and read the state. Raises `NotPlanned`."""
        is_locked = lock_stack(self.folder, self._stack(), Path.cwd() / NAME)
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
