"""The house is measured as it is written, and what passes a ceiling is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit import house

SOURCES = {
    "__init__.py": '"""Top."""\n',
    "privacy/__init__.py": "",
    "privacy/guarantee.py": "class Pure:\n    def gap(self):\n        return 0\n\n\nclass Other(Pure):\n    pass\n",
    "jobs/__init__.py": "",
    "jobs/one.py": (
        "from dpbayes.privacy.guarantee import Other\n\nSTEPS = 8\nSPAN = (1, -2.5)\nNAME = 'x'\n\n\n"
        "def f(x):\n    from dpbayes.jobs import two\n\n    return isinstance(x, Other)\n"
    ),
    "jobs/two.py": "from dpbayes.jobs import one\n",
}


@pytest.fixture
def known(tmp_path: Path) -> dict[str, house.Module]:
    for name, text in SOURCES.items():
        path = tmp_path / "dpbayes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return house.modules(tmp_path)


def test_lazy_imports_close_a_cycle(known: dict[str, house.Module]) -> None:
    found = house.import_numbers(known)
    assert (found["cycle"], found["cyclic"], found["lazy_imports"]) == (2, 2, 1)


def test_questions_about_guarantees_and_bare_numbers_are_counted(known: dict[str, house.Module]) -> None:
    found = house.name_numbers(known)
    assert (found["guarantee_isinstance"], found["constants"]) == (1, 2)


def test_what_passes_its_ceiling_or_was_not_measured_is_named(tmp_path: Path) -> None:
    ceilings = tmp_path / "house.toml"
    ceilings.write_text("lines = 10\nmodules = 3\ncycle = 2\n", encoding="utf-8")
    above = house.exceeded({"lines": 11, "modules": 3, "cycle": None}, ceilings)
    assert above == ["lines: 11, at most 10", "cycle: None, at most 2"]
    ceilings.write_text("rooms = 1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="rooms"):
        house.exceeded({}, ceilings)
