"""The writer schemas of a topic: declared, registered, or in the records."""
