"""What each contender of the races leaves out, as text of the page: the figures alone would not say it."""

LEFT_OUT = """What the figures do not say:

| | Flink SQL | Kafka Connect | Frazil |
|---|---|---|---|
| instants | milliseconds, as set up here | milliseconds | microseconds |
| JSON | without a frame, and lenient: a missing or unknown field passes | the same, without a schema | framed; each value is checked against the schema, and text behind it is refused |
| a record that cannot be read | the job fails, or drops it without a trace | the task fails, or the worker's dead-letter topic takes it | a table of dead letters has its bytes and the reason |
| headers, key, schema id | not landed here; headers and key could be | not landed here | landed, in the row of eight columns |
| proof | offsets in checkpoints | offsets in a control topic and in the snapshot | offsets and counts in the snapshot, which `frazil verify` checks |
| commit | at the job's end, and every 10 s | every 5 s, so a landing waits for the last one | when a batch is written |

- The topics have milliseconds, so that each contender lands the right instants. Flink reads them as numbers and converts them.
- Each JVM has the same heap and parallelism, and its default collector; Frazil's has the parallel one, as `frazil run` sets it.
- The CPU of the peers is that of their JVM. Frazil's includes the driver's Python.
- Cold figures begin with the start of the process, and end with the last row visible. Creation of the table is included for Frazil only."""
