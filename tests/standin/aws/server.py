"""The process of the local AWS: `python -m tests.standin.aws.server PORT` serves patched moto at 127.0.0.1.

Job runs work in the folder above the one in which it is started.
"""

from __future__ import annotations

import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

from frazil.local.ports import HOST
from tests.standin.aws.emr_serverless import patch_emr_serverless
from tests.standin.aws.functions import Functions, patch_functions
from tests.standin.aws.glue import patch_glue
from tests.standin.aws.job_run import Surroundings
from tests.standin.aws.lakeformation import patch_lake_formation
from tests.standin.aws.s3 import patch_s3
from tests.standin.aws.spark_home import SparkHome
from tests.standin.aws.spark_run import SparkRuns

STEP_SECONDS = 0.3
"""How long each step of a run's start takes at least, so that it is visible. On AWS, all steps take about a minute."""


def main(port: int) -> None:
    """Serve until the process is ended."""
    home = Path.cwd().parent
    shutil.rmtree(home / "runs", ignore_errors=True)
    runs = SparkRuns(home=home, spark=SparkHome.made_in(home), endpoint=f"http://{HOST}:{port}")
    serve(
        port,
        Surroundings(
            clock=time.monotonic, today=lambda: datetime.now(UTC), begin=runs.begin, step_seconds=STEP_SECONDS
        ),
        home,
    )


def serve(port: int, around: Surroundings, home: Path) -> None:
    """Serve, with job runs in this context, and functions in a folder."""
    patch_glue()
    patch_s3()
    patch_lake_formation()
    patch_emr_serverless(around)
    functions = Functions(home=home, endpoint=f"http://{HOST}:{port}")
    (functions.home / "functions").mkdir(exist_ok=True)
    patch_functions(functions)
    application = DomainDispatcherApplication(create_backend_app)
    run_simple(HOST, port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]))
