"""The package: its public names, its purity, its shape."""

import subprocess
import sys
from pathlib import Path

import frazil.declaration as declaration

ROOM = Path(declaration.__file__).parent


def test_frazil_is_imported_without_any_package():
    code = f"import sys; sys.path.insert(0, {str(ROOM.parents[1])!r}); from frazil import Pipeline; print(Pipeline.__name__)"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "Pipeline\n"
