"""Models as readable JSON files that carry the release they were built from, and so its guarantee."""

from __future__ import annotations

import json
from pathlib import Path

from dpbayes.domain.schema import Schema
from dpbayes.errors import DpbayesError, ReleaseError
from dpbayes.models.base import Published
from dpbayes.models.bayes_net import BayesNetModel
from dpbayes.models.histogram import HistogramModel
from dpbayes.models.naive_bayes import NaiveBayesModel
from dpbayes.release import Release

FORMAT = "dpbayes-model"
VERSION = 1

AnyModel = NaiveBayesModel | BayesNetModel | HistogramModel
_KINDS: dict[str, type[NaiveBayesModel] | type[BayesNetModel] | type[HistogramModel]] = {
    kind.kind: kind for kind in (NaiveBayesModel, BayesNetModel, HistogramModel)
}


def to_json(model: AnyModel) -> str:
    """The text of a model file."""
    published = model.published
    record = {
        "format": FORMAT,
        "version": VERSION,
        "kind": model.kind,
        "statement": published.statement(),
        "model": model.record(),
        "schema": published.schema.record(),
        "release": published.release().model_dump(mode="json"),
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str | bytes) -> AnyModel:
    """Read a model file; what does not fit the format is refused in one sentence."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise ReleaseError("Model: the file is not JSON.") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("kind") not in _KINDS:
        raise ReleaseError(f"Model: expected a JSON object whose format is {FORMAT!r}.")
    if record.get("version") != VERSION:
        raise ReleaseError(f"Model: expected version {VERSION}, got {record.get('version')!r}. Upgrade to read it.")
    try:
        published = Published.of(Release.from_json(json.dumps(record["release"])), Schema.from_record(record["schema"]))
        return _KINDS[record["kind"]].from_record(record["model"], published)
    except DpbayesError as problem:
        raise ReleaseError(f"Model: the file does not fit together: {problem}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ReleaseError("Model: a part of the file is missing or malformed. Fit the model again.") from None


def load(path: str | Path) -> AnyModel:
    """Read a model from a file."""
    try:
        return from_json(Path(path).read_bytes())
    except OSError as problem:
        raise ReleaseError(f"Model: cannot read {str(path)!r}: {problem.strerror}.") from None


def save(model: AnyModel, path: str | Path) -> None:
    """Write a model whole, or not at all."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_text(to_json(model), encoding="utf-8")
        partial.replace(target)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise ReleaseError(f"Model: cannot write {str(path)!r}: {problem.strerror}.") from None
