"""Records of a file to a topic of the local broker: read, given a schema, encoded, framed and sent."""
