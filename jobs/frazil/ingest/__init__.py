"""The ingest job: the runner, the guard and the loop of batches; the steps of a batch are in the folders."""
