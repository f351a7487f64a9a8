"""A report as strict JSON: verdicts, figures and the definition of every chart, for a script."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dragoman.report.charts.figures import draw_figures
from dragoman.report.diagnosis import Diagnosis
from dragoman.report.files import replace_text
from dragoman.report.tables_machines import host_table, prediction_table

SCHEMA = 1


def write_values(diagnosis: Diagnosis, path: Path) -> None:
    text = json.dumps(values_of(diagnosis), ensure_ascii=False, indent=2, allow_nan=False)
    replace_text(path, text + "\n")


def values_of(diagnosis: Diagnosis) -> dict[str, Any]:
    """Strict JSON: a number that is none becomes null."""
    run, facts = diagnosis.run, diagnosis.facts
    lines = (*diagnosis.headline, "", "", "")[:3]
    tables = {"hosts": host_table(facts), "prediction": prediction_table(facts)}
    values = {
        "schema": SCHEMA,
        "run": str(run.folder.path),
        "headline": {
            **dict(zip(("limit", "action", "worth"), lines, strict=True)),
            "scaling": diagnosis.scaling,
        },
        "answers": [asdict(answer) for answer in diagnosis.answers],
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "summary": asdict(diagnosis.summary),
        "tables": {name: asdict(table) for name, table in tables.items() if table is not None},
        "profile": asdict(run.profile) if run.profile else None,
        "prediction": asdict(run.prediction) if run.prediction else None,
        "manifest": asdict(run.manifest),
        "figures": {
            key: {"title": figure.title, "caption": figure.caption, "vega_lite": figure.chart.to_dict(validate=False)}
            for key, figure in draw_figures(facts).items()
        },
    }
    if diagnosis.is_worksheet:
        values["headline"] = None
    return _without_nan(values)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
