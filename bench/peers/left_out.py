"""What each contender of the races leaves out, as text of the page: the figures alone would not say it."""

LEFT_OUT = """What the figures do not say:

| | Flink SQL | Kafka Connect | Frazil |
|---|---|---|---|
| JSON | no frame; a missing or unknown field passes | the same, without a schema | framed; values are checked against the schema, text after them is refused |
| a record that cannot be read | the job fails, or drops it without a trace | the task fails, or a dead-letter topic takes it | a dead-letter table has its bytes and the reason |
| commit | at its end, and every 10 s | every 5 s: a landing waits for the last | when a batch is written |

- Headers, key and schema id are landed by Frazil's eight columns only. Flink could land headers and key.
- Instants have milliseconds. Frazil could land microseconds.
- Frazil's JVM has the parallel collector. Its CPU includes the driver's Python.
- Cold figures last from the start of a process to its first landing's last row. Frazil's include the table's creation."""
