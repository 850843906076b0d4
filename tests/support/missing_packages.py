"""A Python that lacks one package: a `sitecustomize.py` that hides the one that the variable BLOCKED names."""

BLOCKED = """
import os, sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == os.environ["BLOCKED"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked())
"""
