#!/bin/sh
# Install what `make bundle` packed: a virtual environment with the wheels, and the jars in this user's cache. Nothing is fetched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
into=${1:?"usage: sh install.sh FOLDER"}
"${PYTHON:-python3}" -m venv "$into"
"$into/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$here/wheels" eo-audit
"$into/bin/eo-audit" setup --jars "$here/jars"
cp "$here/collect-dumps.sh" "$into/bin/"
echo "Try it: $into/bin/eo-audit run $here/examples/hanging-transaction/dumps --out /tmp/eo-audit-demo"
