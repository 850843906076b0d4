"""The command `frazil`: one module per group of commands.

Heavy parts (Spark, PyIceberg, Kafka) are imported by the commands that need them, when they do.
"""
