"""A certificate counts for its own mechanism only, and only if enumeration gives it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from dpbayes import Cost, Ledger, PureDP, Unit
from dpbayes.base.errors import BudgetExceeded, DpbayesError, InvalidArgument, ReleaseError
from dpbayes.hellinger import calibration, certificate
from dpbayes.hellinger.certificate import Certificate
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.mechanisms.kinds import from_record
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
PRIOR, TOTAL = (1.0, 1.0), 20
HONEST = calibration.with_certificate(
    PRIOR, TOTAL, 0.8, 0.1, UNIT, certificate.certify(PRIOR, TOTAL, sharpness=0.8, smoothing=0.1, delta=1e-6)
)


def forged(epsilon: float = 0.01, sharpness: float = 50.0) -> Hellinger:
    """A certificate that nobody derived, with the digest that belongs to it."""
    made = Certificate(
        epsilon=epsilon, delta=0.0, epsilon_at_delta=epsilon, table=(0, 20), neighbour=(1, 19), candidate=(0, 20)
    )
    return calibration.with_certificate(PRIOR, TOTAL, sharpness, 0.1, UNIT, made)


def opened(folder: Path, epsilon: float = 1000.0) -> Ledger:
    ledger = Ledger(folder / "book.ledger")
    ledger.open("survey", PureDP(epsilon=epsilon), UNIT)
    return ledger


def test_a_forged_certificate_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with pytest.raises(ReleaseError, match="enumeration"):
        ledger.charge("survey", Cost.of(forged()))
    assert not ledger.account("survey").charges


@pytest.mark.parametrize("missing", [1e-6, 1e-8])
def test_a_certificate_that_claims_a_little_less_is_refused(missing: float) -> None:
    assert HONEST.certificate is not None
    stated = replace(HONEST.certificate, epsilon=HONEST.certificate.epsilon - missing)
    with pytest.raises(ReleaseError, match="enumeration"):
        calibration.with_certificate(PRIOR, TOTAL, 0.8, 0.1, UNIT, stated).confirm()


def test_an_honest_certificate_is_charged_at_its_epsilon_and_read_back(tmp_path: Path) -> None:
    assert HONEST.certificate is not None
    ledger = opened(tmp_path)
    ledger.charge("survey", Cost.of(HONEST))
    assert ledger.account("survey").cost.renyi(math.inf) == HONEST.certificate.epsilon < 0.6


@pytest.mark.parametrize(
    "change",
    [
        {"sharpness": 0.81},
        {"smoothing": 0.2},
        {"prior": (1.0, 2.0)},
        {"total": 21},
        {"certificate": replace(HONEST.certificate, epsilon=0.01)},  # type: ignore[type-var]
        {"certificate": replace(HONEST.certificate, delta=1e-3)},  # type: ignore[type-var]
        {"certificate": replace(HONEST.certificate, digest="0" * 64)},  # type: ignore[type-var]
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_certificate_of_other_parameters_is_refused_when_the_mechanism_is_built(change: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="other parameters"):
        replace(HONEST, **change)


def test_a_record_that_was_edited_is_refused_when_it_is_read() -> None:
    record = json.loads(json.dumps(HONEST.record()))
    record["sharpness"] = 50.0
    with pytest.raises(DpbayesError, match="other parameters"):
        from_record(record)


def old_record() -> dict[str, object]:
    """As dpbayes 0.1.0 wrote it: without a digest."""
    record = json.loads(json.dumps(HONEST.record()))
    del record["certificate"]["digest"]
    return record


def test_a_certificate_without_digest_is_read_and_priced_by_the_theorems() -> None:
    old = from_record(old_record())
    assert old.record() == old_record()
    proved = replace(HONEST, calibration="proved", certificate=None)
    assert old.renyi(math.inf) == proved.renyi(math.inf) > HONEST.renyi(math.inf)
    assert old.epsilon(1e-6) == proved.epsilon(1e-6)


def test_a_certificate_without_digest_cannot_be_charged_at_what_it_claims(tmp_path: Path) -> None:
    cheap = replace(forged().certificate, digest="")  # type: ignore[type-var]
    bare = replace(forged(), certificate=cheap)
    with pytest.raises(BudgetExceeded):
        opened(tmp_path, epsilon=10.0).charge("survey", Cost.of(bare))


def test_a_certificate_is_derived_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = []
    real = certificate.worst_case
    monkeypatch.setattr(certificate, "worst_case", lambda *args: derived.append(1) or real(*args))
    made = calibration.with_certificate(
        PRIOR, TOTAL, 0.77, 0.1, UNIT, certificate.certify(PRIOR, TOTAL, sharpness=0.77, smoothing=0.1, delta=0.0)
    )
    for _ in range(5):
        made.confirm()
    assert len(derived) == 1


def test_reading_a_ledger_derives_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path)
    ledger.charge("survey", Cost.of(HONEST))
    monkeypatch.setattr(certificate, "certify", lambda *_, **__: pytest.fail("derived on an ordinary reading"))
    assert ledger.account("survey").left() > 999
