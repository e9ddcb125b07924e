"""Dump text to fact tables on a cluster: `spark-submit jobs/ingest_dumps.py DUMPS... --out DIR`.

Arguments and exit codes are those of `eo-audit ingest`.
"""

import sys

from eo_audit.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "ingest")
    main()
