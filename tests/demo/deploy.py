"""`make deploy-demo`: deploy a project to stand-ins, change it under a live producer, roll a bad release back, and destroy it.

All steps are commands that a user would type in a project that `frazil init` made. Their output is in `.frazil/deploy-demo`.
Exit codes: 0 all checks pass; 1 a step failed; 3 a requirement is missing, and nothing was started; 130 interrupted.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.markdown import Markdown

from frazil.errors import FrazilError
from frazil.local.services import down
from frazil.local.watchdog import kept_from_outliving
from tests.demo import checkout as own_checkout
from tests.demo.machine import Missing, clean, terraform_settings
from tests.demo.producing import NotProduced
from tests.demo.project import NAME
from tests.demo.steps import StepFailed, Steps
from tests.demo.story import Story
from tests.demo.summary import Summary, write

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(".frazil", "deploy-demo")
CHECKOUT = "checkout"


def main(root: Path) -> int:
    """Run the demonstration and return the exit code that the module's docstring lists."""
    console, out = Console(highlight=False), root / FOLDER
    try:
        with _alone(out):
            return _demonstrated(root, out, console)
    except Missing as missing:
        console.print(f"error: {missing}\n  nothing was started", style="red", markup=False)
        return 3


def _demonstrated(root: Path, out: Path, console: Console) -> int:
    began, summary = time.monotonic(), Summary()
    _clear(out)
    settings = {**clean(os.environ, root), **terraform_settings(root, out, os.environ)}
    place, checkout = out / NAME, out / CHECKOUT
    steps = Steps(folder=place, logs=out / "logs", environment=settings, console=console)
    code = 1
    try:
        with _ended_afterwards(place, out / "logs"):
            own_checkout.make(root, checkout)
            Story(steps=steps, checkout=checkout, out=out, summary=summary).run()
        summary.outcome, code = "passed", 0
    except (StepFailed, NotProduced, FrazilError) as failed:
        summary.failure = str(failed)
    except KeyboardInterrupt:
        summary.failure, code = "interrupted", 130
    except Exception as error:
        summary.failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        summary.seconds, summary.steps = round(time.monotonic() - began, 1), steps.done
        page = write(summary, out)
        for file in (out / "terraform.rc", out / "providers"):
            shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
        if code == 0:
            for folder in (place, checkout, out / "site"):
                shutil.rmtree(folder)
    console.print(Markdown(page) if console.is_terminal else page, markup=False, soft_wrap=True)
    console.print(f"in {out.relative_to(root)}", style="dim", markup=False)
    return code


@contextmanager
def _ended_afterwards(place: Path, logs: Path) -> Iterator[None]:
    """Stop this folder's local cloud and its job runs afterwards, even if this process is killed. Its logs are kept."""
    with ExitStack() as left:
        place.mkdir(parents=True)
        left.enter_context(kept_from_outliving(place, is_temporary=False))
        left.callback(down, place, data=True)
        left.callback(_keep_logs, place, logs)
        yield


def _keep_logs(place: Path, logs: Path) -> None:
    for file in (*place.glob(".frazil/logs/*.log"), *place.glob(".frazil/aws/logs/*.log")):
        shutil.copyfile(file, logs / file.name)


def _clear(out: Path) -> None:
    """Stop and remove everything of an earlier demonstration."""
    down(out / NAME, data=True)
    for each in out.iterdir():
        if each.name != ".lock":
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    (out / "logs").mkdir()


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Missing(what="another deploy-demo runs in this checkout", do="Wait for its end") from None
        yield


def _end(number: int, frame: object) -> NoReturn:
    """Raise `KeyboardInterrupt`, so that everything is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    sys.exit(main(ROOT))
