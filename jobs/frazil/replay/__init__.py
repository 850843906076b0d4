"""Dead letters land again, by commits of their table that read nothing from Kafka."""
