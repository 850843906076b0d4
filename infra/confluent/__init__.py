"""Resources of Confluent Cloud; `resource.py` says how they are declared."""
