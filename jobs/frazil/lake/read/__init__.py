"""Tables without a JVM, through PyIceberg: metadata, data files, rows."""
