"""The product and other systems on the same events: each alone, in turn, in one go.

    make bench-serving    or    .venv/bin/python -m benchmarks.serving [--rows 200000 --parts latency ...]

Parts: `latency` (eight statements by one client, then eight clients mixed; append and upsert; half of it offline),
`peers` (the same over the append table, by every system), `freshness`, `scenes` (right answers while rows arrive,
buckets move and rows are late), `growth` (two statements at several sizes), `restart` (to the first right answer),
`memory` (with a tenth of it). Results go to benchmarks/results/serving.json, part by part, and from there into
docs/benchmarks.md (`--report` does only that).
Pinot and QuestDB are fetched from Maven Central once, chdb from PyPI; one that cannot run here is left out, and the
log says so.
"""

import sys

if __name__ == "__main__":  # processes that are spawned import this module too, and none of what it runs
    from benchmarks.serving.run import main

    sys.exit(main())
