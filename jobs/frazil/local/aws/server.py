"""The process: `python -m frazil.local.aws.server PORT` serves every service of moto at 127.0.0.1, mended."""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

from frazil.local.aws.glue import mend_glue
from frazil.local.ports import HOST


def main(port: int) -> None:
    """Serve until the process is ended."""
    mend_glue()
    application = DomainDispatcherApplication(create_backend_app)
    run_simple(HOST, port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]))
