"""Histories to findings and a verdict on a cluster: `spark-submit jobs/audit.py --out DIR`.

Arguments and exit codes are those of `eo-audit audit`.
"""

import sys

from eo_audit.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "audit")
    main()
