"""The mechanism that the how-to page prints is registered by one line, keeps the contract, and is released."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.mechanisms import test_contract as contract

from dpbayes import Attribute, Curator, Posterior, PureDP, Release, Schema, Tables, Unit
from dpbayes.mechanisms.kinds import KINDS, NOISES, class_of, noises
from dpbayes.release.verify import verify
from dpbayes.words.promise import law

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-mechanism.md"
REPLACE = Unit(adjacency="replace-one")
OF_EVERY = (
    contract.test_it_is_frozen_and_hashable,
    contract.test_its_record_round_trips_through_json,
    contract.test_a_gaussian_shift_covers_it_and_a_ledger_never_prices_it_below_its_exact_cost,
    contract.test_a_record_with_a_missing_field_is_refused,
    contract.test_divergences_grow_with_the_order_and_end_in_the_pure_cost,
    contract.test_the_concentrated_cost_bounds_the_divergences_below_omega,
    contract.test_delta_falls_with_epsilon_and_epsilon_with_delta,
    contract.test_epsilon_is_the_smallest_with_its_delta,
    contract.test_repeating_it_costs_k_times_in_divergence_and_less_in_epsilon,
    contract.test_whole_floats_and_unsigned_counts_are_counts,
    contract.test_a_generator_decides_the_draw_and_the_table_is_left_alone,
    contract.test_curves_of_arrays_are_curves_of_their_numbers,
)


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed file, and the printed line."""
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "printed.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
    name, place = re.search(r'Add `"([\w-]+)": "dpbayes\.mechanisms\.geometric:(\w+)"`', text).groups()
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (NOISES, KINDS):
        monkeypatch.setitem(registry, name, f"printed:{place}")
    yield
    sys.modules.pop("printed")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("law", OF_EVERY, ids=lambda law: law.__name__)
def test_the_printed_mechanism_keeps_the_contract(law: object) -> None:
    law(class_of("geometric-1")(scale=4.0, unit=REPLACE))


@pytest.mark.usefixtures("registered")
def test_it_is_planned_drawn_verified_read_and_described(monkeypatch: pytest.MonkeyPatch) -> None:
    assert noises()[-1].name == "geometric"
    alone = {"geometric-1": NOISES["geometric-1"]}
    monkeypatch.setattr("dpbayes.mechanisms.kinds.NOISES", alone)  # else auto takes another one
    schema = Schema(id="people", unit=REPLACE, attributes=(Attribute(name="sex", categories=("F", "M")),))
    people = {"sex": ["F"] * 60 + ["M"] * 40}
    release = Curator(people, schema, seed=1).release(Tables("sex"), PureDP(epsilon=1.0))
    (table,), (paid,) = release.tables, release.paid
    assert paid.mechanism.record()["mechanism"] == "geometric-1"
    assert release.choice.startswith("geometric noise: the least that meets")
    again = Release.from_json(release.to_json())
    assert [check.name for check in verify(again).checks if not check.passed] == ["randomness"]
    assert law(table, paid.mechanism.record()) == type(paid.mechanism).law_in_words
    found = Posterior(again).table("sex").counts
    assert found.values.sum() == pytest.approx(100)
    assert ((found.lower[:2] <= [60, 40]) & (found.upper[:2] >= [60, 40])).all()
