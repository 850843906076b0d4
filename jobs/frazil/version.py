"""The version of this software, as the distribution's metadata say."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("frazil")
except PackageNotFoundError:  # run from an unpacked archive, as executors do
    VERSION = "0"
