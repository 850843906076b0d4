"""The tools of the local JVMs: Java, jars, class-data sharing."""
