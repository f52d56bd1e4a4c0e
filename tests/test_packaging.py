"""What is published beside the wheel says the same as pyproject.toml; `make dist` builds and tries all of it."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
CONTAINER = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
CONDA_NAMES = {"duckdb": "python-duckdb"}


def test_the_recipe_for_conda_has_the_version_and_the_requirements_of_the_project():
    assert f'version: "{PROJECT["version"]}"' in RECIPE
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in RECIPE
    run = RECIPE.partition("  run:\n")[2].partition("\n\n")[0]
    listed = [line.removeprefix("    - ").replace(" ", "") for line in run.splitlines()][1:]
    needed = [re.match(r"[\w-]+", each)[0] for each in PROJECT["dependencies"]]
    assert listed == [
        CONDA_NAMES.get(name, name) + each.removeprefix(name)
        for name, each in zip(needed, PROJECT["dependencies"], strict=True)
    ]


def test_the_citation_has_the_version_of_the_project():
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_container_is_built_in_two_stages_and_runs_as_nobody_in_particular():
    first, last = re.split(r"^FROM .*\n", CONTAINER, flags=re.MULTILINE)[1:]
    for name in re.findall(r"^COPY (.*) \S+$", first, re.MULTILINE):
        assert all((ROOT / each).exists() for each in name.split())
    assert "--require-hashes -r requirements.lock" in first
    assert re.search(r"^USER [1-9]\d+$", last, re.MULTILINE)
    assert not re.search(r"^(RUN|COPY|ADD)", last.partition("USER")[2], re.MULTILINE)
    assert 'ENTRYPOINT ["dpbayes"]' in last


def test_what_lies_in_a_clone_and_is_no_part_of_it_is_not_published(tmp_path: Path):
    unknown = runpy.run_path(str(ROOT / "packaging" / "dist.py"), run_name="dist")["unknown"]
    for name in ("README.md", "people.csv", "räume.py"):
        (tmp_path / name).touch()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "README.md", "räume.py"], cwd=tmp_path, check=True)
    assert unknown({"README.md", "räume.py"}, tmp_path) == []
    assert unknown({"README.md", "people.csv", "people.ledger"}, tmp_path) == ["people.csv", "people.ledger"]
