"""A process that runs a command line of `hybrid`, to be killed: `killed_command.py HOME WORD...`"""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid.cli.main import run
from hybrid.jvm.jars import spark_jars
from hybrid.lake import spark as lake_spark
from hybrid.lake.spark import SparkSettings
from tests.shared_jvm import session_of_dying


def main() -> None:
    home, *words = sys.argv[1:]
    session = session_of_dying(SparkSettings(spark_jars(), Path(home) / "logs"))
    lake_spark.spark_session = lambda settings: session()
    sys.exit(run(["--home", home, *words]))


if __name__ == "__main__":
    main()
