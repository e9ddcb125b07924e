"""The data-quality gate: Great Expectations suites over the results of an audit. The only module that imports great_expectations.

Suites are data (`conf/expectations/*.json`, one per frame below) that a team edits; they look at two small frames made from verdict.json,
never at the tables of a log, and know no Kafka law. Exit code 0, 1 or 2 like the audit's own.
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit.errors import FAIL, PASS, UNKNOWN, ConfigurationError, WarehouseError
from eo_audit.report.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.checkpoint.checkpoint import CheckpointResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

SITE = "eo_audit"


@dataclass(frozen=True)
class GateResult:
    """What the gate says.

    Attributes:
        exit_code: 0 when all holds, 1 when an expectation is not met, 2 when all hold but the audit's own verdict is unknown.
        unmet: one sentence per expectation that is not met.
        docs: the index page of the Data Docs.
    """

    exit_code: int
    unmet: tuple[str, ...]
    docs: Path


def gate(out: "str | Path", *, expectations: "str | Path", docs: "str | Path | None" = None) -> GateResult:
    """Check the results of an audit against the expectations of a team.

    Args:
        out: output folder of a finished audit.
        expectations: folder with `run.json` and `partitions.json`; either may be missing.
        docs: where the Data Docs are written; `OUT/data-docs` by default.

    Raises:
        WarehouseError: no audit has finished there, or the Data Docs cannot be written.
        ConfigurationError: a suite that Great Expectations cannot use.
    """
    out, expectations = Path(out), Path(expectations)
    results = Results(out)
    frames = {"run": run_frame(results), "partitions": partitions_frame(results.verdict)}
    suites = {name: suite for name in frames if (suite := _suite(expectations / f"{name}.json"))}
    # A gate without expectations would pass everything.
    if not suites:
        raise ConfigurationError(f"{expectations} holds none of {', '.join(f'{name}.json' for name in frames)}")
    site = Path(docs or out / "data-docs").resolve()
    _need_writable(site)
    unmet = _check(frames, suites, site)
    unknown = results.verdict["verdict"] == "unknown"
    return GateResult(FAIL if unmet else UNKNOWN if unknown else PASS, tuple(unmet), site / "index.html")


def _need_writable(site: Path) -> None:
    why = "it is not writable"
    try:
        site.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = str(error.strerror).lower()
    if not (site.is_dir() and os.access(site, os.W_OK)):
        raise WarehouseError(f"the Data Docs cannot be written into {site} ({why}): name another folder with --docs")


def run_frame(results: Results) -> "pd.DataFrame":
    """One row: failing and accepted findings, unknown rules, unread bytes. A wait that the policy calls a failure counts as a finding."""
    import pandas as pd

    verdict = results.verdict
    rules, inputs = verdict["rules"], verdict["inputs"]
    assert isinstance(rules, dict) and isinstance(inputs, list)
    held = verdict.get("held_back")
    # A wait is no finding (no rule is broken), but the run fails by it: a gate that passes there would contradict verdict.json.
    too_long = len(held["partitions"]) if isinstance(held, dict) and held["decides"] == "fail" else 0
    return pd.DataFrame(
        [
            {
                "failing_findings": sum(rule["failing"] for rule in rules.values()) + too_long,
                "accepted_findings": sum(rule.get("accepted", 0) for rule in rules.values()),
                "unknown_rules": sum(rule["verdict"] == "unknown" for rule in rules.values()),
                "unread_bytes": sum(entry["unread_bytes"] for entry in inputs),
            }
        ]
    )


def partitions_frame(verdict: Mapping[str, object]) -> "pd.DataFrame":
    """One row per partition replica, with how far its LSO is behind its HW."""
    import pandas as pd

    rows = verdict["partitions"]
    assert isinstance(rows, list)
    columns = ["cluster", "broker", "topic", "partition", "coverage", "held_back_records"]
    # Null where nobody knows: a nullable integer, or pandas would make every offset a float.
    held_back = [None if row["lso"] is None or row["hw"] is None else row["hw"] - row["lso"] for row in rows]
    return pd.DataFrame(rows, columns=columns).assign(held_back_offsets=pd.array(held_back, dtype="Int64"))


def _suite(path: Path) -> dict[str, object] | None:
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("expectations"), list):
        raise ConfigurationError(f"{path} must hold one object with a list named expectations")
    return content


def _check(frames: Mapping[str, "pd.DataFrame"], suites: Mapping[str, Mapping[str, object]], site: Path) -> list[str]:
    """Run every suite over its frame as one checkpoint, and write the Data Docs."""
    unmet: list[str] = []
    context = _context(site)
    source = context.data_sources.add_pandas("results")
    for name, suite in suites.items():
        result = _run_suite(context, source.add_dataframe_asset(name), name=name, suite=suite, frame=frames[name])
        unmet += _sentences(name, result)
    context.build_data_docs(site_names=[SITE])
    return unmet


def _context(site: Path) -> "EphemeralDataContext":
    # An audit tells nobody that it ran: no usage statistics. Read when the package is imported.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # what is wrong is told in one sentence
    # In memory: a file context would leave a project folder with settings beside the results.
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(site)}
    index = {"class_name": "DefaultSiteIndexBuilder"}
    context.add_data_docs_site(
        site_name=SITE, site_config={"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index}
    )
    return context


def _run_suite(
    context: "EphemeralDataContext", asset: object, *, name: str, suite: Mapping[str, object], frame: "pd.DataFrame"
) -> "CheckpointResult":
    import great_expectations as gx
    from great_expectations.datasource.fluent.pandas_datasource import DataFrameAsset

    assert isinstance(asset, DataFrameAsset)
    expectations = suite["expectations"]
    assert isinstance(expectations, list)
    try:
        loaded = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
    except Exception as error:  # Great Expectations raises errors of many unrelated classes for a bad suite
        raise ConfigurationError(f"the expectations of {name}.json cannot be used: {' '.join(str(error).split())}") from error
    if len(loaded.expectations) != len(expectations):  # the library logs those it does not understand, and leaves them out
        understood = {expectation.expectation_type for expectation in loaded.expectations}
        left_out = sorted({str(wanted.get("type")) for wanted in expectations} - understood)
        raise ConfigurationError(f"the expectations of {name}.json cannot be used: {', '.join(left_out) or 'one has wrong arguments'}")
    definition = gx.ValidationDefinition(name=name, data=asset.add_batch_definition_whole_dataframe(name), suite=loaded)
    checkpoint = gx.Checkpoint(name=name, validation_definitions=[context.validation_definitions.add(definition)], actions=[])
    return context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": frame})


def _sentences(name: str, result: "CheckpointResult") -> Sequence[str]:
    told = []
    for validation in result.run_results.values():
        for check in validation.results:
            wanted = check.expectation_config
            if wanted and not check.success:
                # The words of the team that wrote the expectation (`meta.why`), behind what the library found.
                seen = check.result.get("partial_unexpected_list") or check.exception_info
                reason = (wanted.meta or {}).get("why", "")
                told.append(f"{name}: {wanted.type} {wanted.kwargs.get('column')}: found {seen}. {reason}".rstrip())
    return told
