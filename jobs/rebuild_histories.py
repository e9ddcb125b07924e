"""Fact tables to histories on a cluster: `spark-submit jobs/rebuild_histories.py --out DIR`.

Arguments and exit codes are those of `eo-audit rebuild`.
"""

import sys

from eo_audit.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "rebuild")
    main()
