import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from frazil.local.process import noted
from frazil.local.services import down

pytestmark = pytest.mark.e2e

OWNER = """
import sys
from frazil.local.services import Part, world
with world(parts=[Part.OBJECT_STORE]) as up:
    print(up.home, flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_a_world_ends_with_its_temporary_folder_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with owner:
        assert owner.stdout is not None
        home = Path(owner.stdout.readline().strip())
        (store,) = noted(home)
        server = psutil.Process(store.pid)
        (watchdog,) = [child for child in psutil.Process(owner.pid).children() if child.pid != store.pid]
        owner.kill()
    try:
        ended, running = psutil.wait_procs([server, watchdog], timeout=60)
        assert (len(ended), running) == (2, [])
        assert not home.parent.exists()
    finally:
        down(home.parent)
