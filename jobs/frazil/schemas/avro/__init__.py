"""Avro writer schemas, their row types, and the reader schemas that decode records into those row types."""

from frazil.schemas.avro.parser import parse
from frazil.schemas.avro.reader_schema import JVM_PROPERTIES, OPTIONS, Reader, reader
from frazil.schemas.avro.row_type import RECURSION_DEPTH, row_type
from frazil.schemas.avro.schema import AvroSchema
from frazil.schemas.avro.schema_fingerprint import fingerprint
