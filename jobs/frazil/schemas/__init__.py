"""From writer schemas to one row type: Avro, JSON Schema and Protobuf; merge of versions; schema changes as values."""
