"""Flink SQL and Kafka Connect as contenders of the bench: their jars, their processes, their races, their page."""
