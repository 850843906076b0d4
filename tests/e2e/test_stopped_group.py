"""A signal to the whole process group, as systemd and `timeout` send it, is a stop and no defect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.documents import written
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
PATIENCE = 120.0


def test_a_signal_to_the_process_group_reads_as_a_stop(shop: Shop, tmp_path: Path) -> None:
    shop.produce(shop.orders(5, shop.register()))
    command = [str(Path(sys.executable).parent / "frazil"), "run", shop.pipeline.name, "--follow", "--every", "0.2"]
    process = subprocess.Popen(
        [*command, *written(tmp_path, [shop.pipeline], shop.environment), "--memory", "1g", "--master", "local[2]"],
        cwd=tmp_path,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    lines, landed = list[str](), threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if line.startswith("{") and json.loads(line)["event"] == "batch_committed":
                landed.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert landed.wait(PATIENCE), lines
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, lines
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        reader.join(PATIENCE)
    assert not [line for line in lines if "error" in line.lower() or "Traceback" in line], lines
    shop.assert_each_record_once()
