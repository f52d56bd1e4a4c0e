"""The surface: what the package offers, how large its files are, and what importing it costs."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpbayes

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(dpbayes.__path__, prefix="dpbayes.")
    if not module.name.endswith("__main__")
)
HEAVY = {
    "dp_accounting",
    "duckdb",
    "matplotlib",
    "opendp",
    "pandas",
    "polars",
    "pyarrow",
    "pydantic",
    "rich",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after running the statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_all_names_are_importable_and_nothing_public_is_left_out() -> None:
    offered = {name: getattr(dpbayes, name) for name in dpbayes.__all__}
    assert len(offered) == len(dpbayes.__all__)
    assert len(offered) <= 30
    assert {*dpbayes._HOME, "__version__"} == set(dpbayes.__all__)
    assert not set(dpbayes._HOME) & set(dpbayes._MOVED)
    assert set(dpbayes.ROOMS) == set(ROOMS)
    for name in dpbayes._HOME:
        thing = offered[name]
        assert thing is getattr(importlib.import_module(f"dpbayes.{dpbayes._HOME[name]}"), name)
    assert set(dpbayes.__all__) <= set(dir(dpbayes))


def test_names_are_sorted_so_that_a_reader_finds_them() -> None:
    assert list(dpbayes._HOME) == sorted(dpbayes._HOME)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Magic'"):
        dpbayes.Magic  # noqa: B018 - asking is the test


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_by("import dpbayes")
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith("dpbayes.") and "cli" in name}


def test_pricing_one_release_loads_no_accountant_sampler_or_statistics() -> None:
    loaded = loaded_by(
        "from dpbayes import *\n"
        "unit = Unit(adjacency='replace-one')\n"
        "for m in (Dirichlet(weight=1, concentration=9, unit=unit), Gaussian(sigma=3, unit=unit),"
        " Laplace(scale=3, unit=unit)):\n"
        "    Cost.of(m).epsilon(1e-6), m.renyi(2), m.record()"
    )
    assert not loaded & {"dp_accounting", "opendp", "scipy.stats", "scipy.optimize", "duckdb", "pandas", "click"}


def test_drawing_noise_needs_no_library_but_numpy_and_the_generator() -> None:
    loaded = loaded_by(
        "from dpbayes import Gaussian, Laplace, Unit\n"
        "unit = Unit(adjacency='replace-one')\n"
        "for m in (Gaussian(sigma=3, unit=unit), Laplace(scale=3, unit=unit)):\n"
        "    m.draw([1, 2, 3])"
    )
    assert "randomgen" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src").rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_module_is_longer_than_four_hundred_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    path = importlib.util.find_spec(name)
    assert path is not None
    assert path.origin is not None
    source = Path(path.origin).read_text(encoding="utf-8")
    assert not source.strip() or source.startswith('"""')


def test_no_tracked_file_names_a_package_registry() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    tracked = [ROOT / name for name in listed.stdout.split("\0") if name] if listed.returncode == 0 else []
    paths = tracked or [*ROOT.glob("*.*"), *(ROOT / "src").rglob("*.py")]  # a source archive has no index
    registry = re.compile(rb"https?://[^\s\"')>]*(?:/simple\b|registry\.|artifactory|nexus|pypi\.)", re.IGNORECASE)
    option = re.compile(rb"^\s*--?(?:extra-)?index-url\s|^\s*--find-links\s", re.MULTILINE)
    for path in paths:
        if path.is_file() and path != Path(__file__).resolve():
            content = path.read_bytes()
            assert not registry.search(content), path
            assert not option.search(content), path


def test_what_a_first_user_writes_is_understood_or_answered_in_a_sentence() -> None:
    assert dpbayes.ApproxDP(1, 1e-6) == dpbayes.ApproxDP(epsilon=1, delta=1e-6)
    assert (dpbayes.PureDP(1), dpbayes.ZCDP(1)) == (dpbayes.PureDP(epsilon=1), dpbayes.ZCDP(rho=1))
    unit = dpbayes.Unit(adjacency="replace-one")
    schema = dpbayes.Schema(
        id="two", unit=unit, attributes=(dpbayes.Attribute(name="a", categories=("x", "y"), missing="other"),)
    )
    curator = dpbayes.Curator({"a": ["x", "y"]}, schema)
    with pytest.raises(
        dpbayes.base.errors.InvalidArgument,
        match=r"expected a guarantee, got 1\.0\. Write dp\.PureDP\(1\.0\) or dp\.ApproxDP\(1\.0, 1e-6\)\.$",
    ):
        curator.release(dpbayes.Tables("a"), 1.0)
    with pytest.raises(dpbayes.base.errors.InvalidArgument, match="calibrate: expected a guarantee, got 1"):
        dpbayes.calibrate(dpbayes.Gaussian, 1, "replace-one")
    with pytest.raises(
        dpbayes.base.errors.InvalidArgument, match=r"got \['a', 'b'\].*Tables\('region', 'income\|sex'\)"
    ):
        dpbayes.Tables(["a", "b"])


def test_the_version_is_that_of_the_installation() -> None:
    assert dpbayes.__version__ == importlib.metadata.version("dpbayes")


ROOMS = ("hellinger", "jobs", "mechanisms", "models", "privacy", "schema", "tables")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_offers_its_names_and_loads_them_when_they_are_asked_for(room: str) -> None:
    module = importlib.import_module(f"dpbayes.{room}")
    assert list(module.__all__) == sorted(module._HOME) == sorted(set(module._HOME) - set(dpbayes._HOME))
    for name, home in module._HOME.items():
        thing = getattr(module, name)
        assert thing is getattr(importlib.import_module(f"dpbayes.{home}"), name)
        with pytest.raises(AttributeError, match=rf"^dpbayes\.{name} is now dpbayes\.{room}\.{name}\.$"):
            getattr(dpbayes, name)
    with pytest.raises(AttributeError, match=f"module 'dpbayes.{room}' has no attribute 'Magic'"):
        module.Magic  # noqa: B018 - asking is the test


def test_importing_a_room_loads_nothing_heavy() -> None:
    loaded = loaded_by("".join(f"import dpbayes.{room}\n" for room in ROOMS))
    assert not loaded & HEAVY
    assert "dpbayes.schema.schema" not in loaded


def test_what_a_thing_is_about_comes_by_position() -> None:
    dp = dpbayes
    replace = dp.Unit("replace-one")
    assert (dp.RDP(5, 1), dp.TCDP(0.1, 20)) == (dp.RDP(order=5, epsilon=1), dp.TCDP(rho=0.1, omega=20))
    assert dp.Dirichlet(1, 10, "replace-one") == dp.Dirichlet(weight=1, concentration=10, unit=replace)
    assert dp.Gaussian(4, "add-remove:5").unit == dp.Unit("add-remove", 5)
    assert dp.Laplace(4, replace) == dp.Laplace(scale=4, unit=replace)
    assert dp.Attribute("sex", ["F", "M"]) == dp.Attribute(name="sex", categories=("F", "M"))
    assert dp.Schema(id="a", unit="add-remove:5", attributes=()).unit.text == "add-remove:5"
    assert dp.Categories("job") == dp.Categories(column="job")
    edges = dp.Edges("age", 0, 120, bins=5)
    assert (edges.column, edges.quantiles.upper, edges.quantiles.bins, edges.numeric) == ("age", 120.0, 5, True)
    assert dp.Synthetic("income") == dp.Synthetic(target="income")
    assert dp.PosteriorTable("sex", 0.5).prior == (0.5,)


def test_a_table_may_say_how_exact_it_has_to_be() -> None:
    asked = dpbayes.Tables("sex ± 1 point", "region +- 50 records")
    assert asked == dpbayes.Tables(want={"sex": "± 1 point", "region": "± 50 records"})
    with pytest.raises(dpbayes.base.errors.InvalidArgument, match="want says nothing about job"):
        dpbayes.Tables("job", "sex ± 1 point")


def test_a_model_carries_what_its_release_is_asked_for_and_is_the_same_model_without() -> None:
    from dpbayes.curator import as_job

    plain, other = dpbayes.NaiveBayes("income", "sex", "age"), dpbayes.NaiveBayes("income", features=("sex", "age"))
    assert plain == other == dpbayes.NaiveBayes("income", "sex", "age", mechanism="laplace")
    fit = as_job(dpbayes.NaiveBayes("income", mechanism="laplace", tempered=True))
    assert (fit.mechanism, fit.tempered) == ("laplace", True)
    assert fit.record()["model"] == dpbayes.NaiveBayes("income").record()
    assert dpbayes.NaiveBayes("income", single_draw=True).estimate == "draw"
    graph = dpbayes.BayesNet("age", "education|age", "income|age,education", "sex")
    assert graph.parents["income"] == ("age", "education")
    assert graph.nodes == ("sex",)
    for wrong in (("a", "a"), ("a,b|c",), ("a|b", "a|c")):
        with pytest.raises(dpbayes.base.errors.InvalidArgument, match="each node once, with its parents"):
            dpbayes.BayesNet(*wrong)


def test_costs_add_up_as_they_are_written() -> None:
    draw, noise = dpbayes.Dirichlet(1, 10, "replace-one"), dpbayes.Gaussian(4, "replace-one")
    assert 3 * draw + noise == dpbayes.Cost.of(draw, 3) + dpbayes.Cost.of(noise) == draw + 2 * draw + noise
    with pytest.raises(dpbayes.base.errors.InvalidArgument, match="Fix all but one"):
        dpbayes.calibrate(dpbayes.Dirichlet, dpbayes.ApproxDP(1, 1e-6), "replace-one")
    with pytest.raises(dpbayes.base.errors.InvalidArgument, match="expected the unit"):
        dpbayes.calibrate(dpbayes.Gaussian, dpbayes.ApproxDP(1, 1e-6))
