"""The local cloud: `python -m tests.standin up FOLDER` prints its addresses and variables as JSON.

`python -m tests.standin run-schedule FOLDER NAME REGION [EXECUTION]` runs a schedule, since the local cloud has no clock.
`frazil local down` stops it.
"""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import asdict
from pathlib import Path

from frazil.local import services
from frazil.local.services import fetch_jars_of
from tests.standin.aws import launch, scheduler
from tests.standin.aws.endpoint import edge_port, exports
from tests.standin.terraform import stand_in_settings


def up(folder: Path) -> dict[str, object]:
    """Start the services of a folder and the local AWS. Return their addresses, and the variables for their clients."""
    fetch_jars_of(services.USUAL)
    started = services.up(folder)
    endpoint = launch.up(started, lowest_port=edge_port())
    variables = {**exports(endpoint, region=launch.REGION), **stand_in_settings(started)}
    return {"parts": {name: dict(at) for name, at in started.addresses.items()}, "exports": variables}


def main(command: str, folder: str, *more: str) -> None:
    """Run a command, and print its result."""
    if command == "up":
        print(json.dumps(up(Path(folder))))
        return
    name, region, execution = (*more, str(uuid.uuid4()))[:3]
    endpoint = launch.endpoint_of(services.running(Path(folder)).home)
    print(json.dumps(asdict(scheduler.run_schedule(endpoint, name, region=region, execution=execution))))


if __name__ == "__main__":
    main(*sys.argv[1:])
