"""Starting and stopping several local parts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

from frazil.local.process import Process, noted, stop
from frazil.local.state_file import Address

P = TypeVar("P", bound=str)


def start_together(home: Path, starts: Mapping[P, Callable[[], Address]], *, kept: set[str]) -> dict[str, Address]:
    """Start parts in parallel and return their addresses. If one fails, stop all but `kept` and raise its error."""
    if not starts:
        return {}

    def end() -> None:
        stop_together([process for process in noted(home) if process.name not in kept])

    with ThreadPoolExecutor(max_workers=len(starts)) as pool:
        pending = {part: pool.submit(begin) for part, begin in starts.items()}
        try:
            done, _ = wait(pending.values(), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            end()
            pool.shutdown()
            end()  # parts that were still being prepared may have started since
            raise
    return {str(part): future.result() for part, future in pending.items()}


def stop_together(processes: Sequence[Process]) -> None:
    """Stop processes in parallel. Raises `LocalPartFailed` if one does not end."""
    if processes:
        with ThreadPoolExecutor(max_workers=len(processes)) as pool:
            list(pool.map(stop, processes))
