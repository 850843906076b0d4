"""What the local JVMs need: Java, jars, shared classes."""
