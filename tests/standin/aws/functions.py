"""AWS Lambda in moto's process: a function runs as a process of its own, from its uploaded program, with its role's credentials.

moto needs Docker to run functions. Here each call starts Python with the unpacked program and nothing else on its path, as the
service does: no package of this machine, and no variable of this process.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import threading
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moto.awslambda.models import LambdaFunction

from tests.standin.aws.role import Role

_RUN = """
import importlib, json, sys, types
program, handler, request, answer = sys.argv[1:]
sys.path.insert(0, program)
module, _, name = handler.rpartition(".")
said = getattr(importlib.import_module(module), name)(json.load(sys.stdin), types.SimpleNamespace(aws_request_id=request))
with open(answer, "w") as file:
    json.dump(said, file)
"""
_LOGGING = "logging_config"
_TAIL = 4096  # characters of the log that an answer has

_unpacking = threading.Lock()


@dataclass(frozen=True, slots=True)
class Called:
    """The end of a call: the answer, or the error, as JSON; whether it is an error; the end of the log."""

    answer: str
    is_error: bool
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """The programs and logs of all functions, in `home`. `endpoint` is where functions find AWS."""

    home: Path
    endpoint: str

    def call(self, function: LambdaFunction, event: Any) -> Called:
        """Run a function once with an event."""
        request = str(uuid.uuid4())
        answer = self.home / "functions" / f"{request}.json"
        program = self._unpacked(function.code_bytes)
        role = Role(function.role, endpoint=self.endpoint, region=function.region)
        variables = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "AWS_LAMBDA_FUNCTION_NAME": function.function_name}
        # Not this interpreter: it belongs to the virtual environment, whose packages the service does not have.
        python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        command = [str(python), "-I", "-S", "-c", _RUN, str(program), function.handler or "", request, str(answer)]
        try:
            ended = subprocess.run(
                command,
                input=json.dumps(event),
                env={**variables, **role.environment(), **function.environment_vars},
                cwd=program,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=float(function.timeout),
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            self._log(function, request, (late.stdout or b"").decode(errors="replace"))  # bytes, whatever `text` says
            return _failed("Sandbox.Timedout", f"Task timed out after {function.timeout} seconds", "")
        self._log(function, request, ended.stdout)
        if ended.returncode:
            last = ended.stdout.strip().rpartition("\n")[2]
            kind, _, message = last.partition(": ")
            return _failed(kind, message or last, ended.stdout[-_TAIL:])
        said = answer.read_text()
        answer.unlink()
        return Called(said, False, ended.stdout[-_TAIL:])

    def log_file(self, name: str) -> Path:
        """Return the file with the log of a function."""
        return self.home / "functions" / f"{name}.log"

    def _log(self, function: LambdaFunction, request: str, text: str) -> None:
        with self.log_file(function.function_name).open("a") as file:
            file.write(f"START {request}\n{text}")

    def _unpacked(self, program: bytes) -> Path:
        """Return the folder of a program, unpacked at its first call."""
        folder = self.home / "functions" / hashlib.sha256(program).hexdigest()[:16]
        with _unpacking:
            if not folder.exists():
                partly = folder.with_suffix(".partly")
                with zipfile.ZipFile(io.BytesIO(program)) as packed:
                    packed.extractall(partly)
                partly.rename(folder)
        return folder


def patch_functions(functions: Functions) -> None:
    """Make this process's moto run functions, by requests and by events."""

    def invoked(function: LambdaFunction, event: Any = None) -> tuple[str, bool, str]:
        called = functions.call(function, {} if event in (None, "{}") else event)
        return called.answer, called.is_error, called.log

    LambdaFunction._invoke_lambda = invoked  # type: ignore[method-assign,assignment]
    _keep_logging()


def _keep_logging() -> None:
    """Let functions keep their log group, which moto drops: Terraform would find a difference at each plan."""
    configuration, updated = LambdaFunction.get_configuration, LambdaFunction.update_configuration

    def with_logging(function: LambdaFunction, on_create: bool = False) -> dict[str, Any]:
        usual = {"LogFormat": "Text", "LogGroup": function.logs_group_name}
        return {**configuration(function, on_create), "LoggingConfig": getattr(function, _LOGGING, None) or usual}

    def with_changed_logging(function: LambdaFunction, asked: dict[str, Any]) -> dict[str, Any]:
        setattr(function, _LOGGING, asked.get("LoggingConfig") or getattr(function, _LOGGING, None))
        return updated(function, asked)

    begun = LambdaFunction.__init__

    def begin(function: LambdaFunction, account_id: str, spec: dict[str, Any], *more: Any, **named: Any) -> None:
        setattr(function, _LOGGING, spec.get("LoggingConfig"))
        begun(function, account_id, spec, *more, **named)

    LambdaFunction.__init__ = begin  # type: ignore[method-assign,assignment]
    LambdaFunction.get_configuration = with_logging  # type: ignore[method-assign,assignment]
    LambdaFunction.update_configuration = with_changed_logging  # type: ignore[method-assign,assignment]


def _failed(kind: str, message: str, log: str) -> Called:
    return Called(json.dumps({"errorType": kind, "errorMessage": message}), True, log)
