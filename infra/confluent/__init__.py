"""Resources of Confluent Cloud, typed by hand. `resource.py` says how, `cloud`, `kafka` and `tableflow` which."""
