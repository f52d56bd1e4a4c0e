"""What a planned release would cost and how exact it would be, before anything is paid or read."""

from __future__ import annotations

from typing import Any

from dpbayes.jobs.base import Plan
from dpbayes.jobs.mechanisms import spread
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS
from dpbayes.privacy.guarantee import rounded_up

NOISY = (Dirichlet, Gaussian, Laplace)


def preview(plan: Plan) -> dict[str, Any]:
    """Mechanisms, cost and the noise to expect on every table; public numbers only."""
    schema, gap = plan.schema, plan.target.gap(plan.cost)
    records = schema.records or getattr(plan.job, "expected_records", None) or REFERENCE_RECORDS
    tables = []
    for marginal, by in zip(plan.tables, plan.places, strict=False):
        mechanism, cells = plan.paid[by].mechanism, marginal.size(schema)
        tables.append(
            {
                "table": str(marginal),
                "cells": cells,
                "mechanism": mechanism.record(),
                "standard_deviation": spread(mechanism, records / cells) if isinstance(mechanism, NOISY) else None,
            }
        )
    return {
        "job": plan.job.record(),
        "choice": plan.choice,
        "target": str(plan.target),
        "cost": rounded_up(plan.target.size + gap),
        "gap": gap,
        "paid": [{"mechanism": paid.mechanism.record(), "times": paid.times} for paid in plan.paid],
        "columns": [*([] if schema.person is None else [schema.person]), *plan.columns],
        "records_assumed": records,
        "tables": tables,
        "rows_read": 0,
    }
