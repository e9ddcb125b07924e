"""One audit for the dumps of many files of tests: planning an audit costs more than auditing a hundred clusters more in it.

A file takes part with a function `dumps_of_tests`: it makes the file's dumps below a folder and returns them as a `Part`. All are told
apart by the names of their clusters, so what an audit says of all of them at once is no matter for these tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

import eo_audit
from eo_audit import pipeline
from eo_audit.audit import step
from eo_audit.audit.collect import Collected, collect
from eo_audit.report.results import Results
from eo_audit.rules.context import Context
from tests.cluster.audit import Said, told
from tests.support.reshaped import copied


@dataclass(frozen=True)
class Part:
    """The dumps of one file of tests.

    Attributes:
        inputs: folders and files, as `eo-audit run` is given them.
        later: what comes in afterwards, into the same results, once for each list.
        kept: what the tests of the file need to know of how the dumps were made.
    """

    inputs: Sequence[Path]
    later: Sequence[Sequence[Path]] = ()
    kept: object = None


@dataclass(frozen=True)
class Together:
    """What the audit says.

    Attributes:
        results: of all.
        said: of each cluster.
        context: what rules may ask of all logs and clusters.
        kept: of each part, by the name of its module.
    """

    results: Results
    said: Mapping[str, Said]
    context: Context
    kept: Mapping[str, object]


def as_it_is(source: Path, folder: Path) -> None:
    """Dumps as they are, under the name of the folder, to compare others with; several files of tests do, and the first one makes it."""
    if not folder.is_dir():
        copied(source, folder)


def audit(spark: SparkSession, modules: Iterable[ModuleType], folder: Path) -> Together:
    """Make what each module brings, ingest it, night by night, and audit all of it once.

    What its rules were told is asked once, for the results and for what is said of each cluster.
    """
    parts = {module.__name__: module.dumps_of_tests(folder / "dumps") for module in modules}
    out, options, asked = folder / "out", pipeline.Options(), list[Collected]()
    # Each folder once: files of tests may bring the same dumps. Most come in the last night, for adding to much takes longer.
    nights = reversed(list(zip_longest(*(reversed([part.inputs, *part.later]) for part in parts.values()), fillvalue=())))
    dumps = [pipeline.discover(sorted({path for inputs in night for path in inputs}), options) for night in nights]
    size = sum(map(pipeline.stored_bytes, dumps))
    with pytest.MonkeyPatch.context() as patch, pipeline.writing(out, options, input_bytes=size, spark=lambda: spark) as warehouse:
        for night in dumps:
            pipeline.ingest(warehouse, night, options)
        # Histories are made of all facts: those in between are read by nobody here.
        pipeline.rebuild(warehouse, options)
        patch.setattr(step, "collect", lambda tables: asked.append(collect(tables)) or asked[-1])
        pipeline.audit(warehouse, options)
    inputs = [path for part in parts.values() for paths in (part.inputs, *part.later) for path in paths]
    results = eo_audit.open(out)
    said = told(inputs, asked[0], results.rows("visible_ranges"))
    return Together(results, said, asked[0].context, {name: part.kept for name, part in parts.items()})
