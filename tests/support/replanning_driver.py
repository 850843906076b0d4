"""A driver that does not give up when it is fenced, but plans again: twins of it run against each other until the topic is drained.

    replanning_driver.py (the arguments of jobs/ingest.py)

Prints one line when it is ready and begins when it is answered by one; at its end prints how often it landed a batch and how
often it was fenced.
"""

import importlib.util
import json
import sys
from pathlib import Path

ENTRY = Path(__file__).parents[2] / "jobs" / "ingest.py"


def main() -> int:
    spec = importlib.util.spec_from_file_location("ingest_entry", ENTRY)
    assert spec is not None
    assert spec.loader is not None
    entry = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(entry)
    batches = fenced = 0
    drain = entry.runner.drain

    def drain_on(*arguments, **options):
        nonlocal batches, fenced
        print("ready", flush=True)
        sys.stdin.readline()
        while True:
            outcomes = drain(*arguments, **{**options, "probe": False})
            (outcome,) = outcomes.values()
            batches += outcome.total.batches
            fenced += outcome.total.fenced
            if not outcome.total.fenced:
                print(json.dumps({"batches": batches, "fenced": fenced}))
                return outcomes

    entry.runner.drain = drain_on
    return entry.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
