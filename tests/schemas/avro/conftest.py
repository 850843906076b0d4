"""Values of Avro are decoded with generated code, as in large batches, and without it, as in small ones."""

from tests.support.both_ways import either_way

__all__ = ["either_way"]
