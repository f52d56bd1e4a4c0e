"""What a planned release would cost and how exact it would be, before anything is paid or read."""

from __future__ import annotations

from typing import Any

from dpbayes.jobs.base import Plan
from dpbayes.jobs.forecast import TableForecast, design_of, expected, forecast
from dpbayes.mechanisms.tuning import REFERENCE_RECORDS
from dpbayes.privacy.guarantee import rounded_up
from dpbayes.release.design import Design


def preview(plan: Plan) -> dict[str, Any]:
    """Mechanisms, cost and the error to expect in every table; public numbers only."""
    schema, gap, design = plan.schema, plan.target.gap(plan.cost), design_of(plan)
    forecasts = {each.marginal: each for each in forecast(plan)}
    by = dict(zip(plan.tables, plan.places, strict=False))
    tables = []
    for marginal in plan.wanted:
        drawn = plan.paid[by[marginal]].mechanism.record() if marginal in by else None
        entry = {"table": str(marginal), "cells": marginal.size(schema), "mechanism": drawn}
        tables.append(entry | _errors(forecasts.get(marginal)))
    return {
        "job": plan.job.record(),
        "choice": plan.choice,
        "target": str(plan.target),
        "cost": rounded_up(plan.target.size + gap),
        "gap": gap,
        "paid": [{"mechanism": paid.mechanism.record(), "times": paid.times} for paid in plan.paid],
        "columns": [*([] if schema.person is None else [schema.person]), *plan.columns],
        "records_assumed": expected(plan) or REFERENCE_RECORDS,
        "tables": tables,
        "measured": [] if design is None else _measured(design),
        "over_optimum": None if design is None else design.over_optimum,
        "rows_read": 0,
    }


def _errors(found: TableForecast | None) -> dict[str, Any]:
    if found is None:
        return {"standard_deviation": None}
    return {
        "standard_deviation": found.standard_error,
        "plus_minus_records": found.records,
        "plus_minus_points": found.points,
        "group_records": found.group_records,
        "plus_minus_group_points": found.group_points,
        "readable_from": found.readable_from,
        "derived_from": None if found.derived_from is None else str(found.derived_from),
    }


def _measured(design: Design) -> list[dict[str, Any]]:
    """Each table that is measured: its part of the budget, and how much errors would grow without it."""
    gains = design.gains()
    return [
        {
            "table": str(each.marginal),
            "share": each.share,
            "errors_without_it": gains[each.marginal],
            "asked": each.asked,
        }
        for each in design.measured
    ]
