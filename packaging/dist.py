"""Build what is published, and try it as somebody who has nothing else: `make dist`.

Source archive and wheel are built twice and compared. Then the wheel alone is installed into an empty environment,
first without extras and then with each, and the commands of README run there. Beside the two files lie a bill of
materials (CycloneDX), their digests, and a recipe for conda with the digest of the archive. The build steps of the
Containerfile run too, in folders instead of a container: no engine is needed, and none is tested.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
STEM = f"dpbayes-{PROJECT['version']}"
EPOCH = "1767225600"
"""The time that files in the archives bear, so that everybody builds the same bytes: 2026-01-01."""

NEEDS_EXTRA = {
    "plot": "dpbayes price 'Dirichlet(1, 10)' --plot price.png",
    "xlsx": "dpbayes export published/1 workbook --with xlsx",
    "sign": "dpbayes keys office",
    "studio": "timeout --signal INT 5 dpbayes studio . --no-browser --port 0 || test $? -eq 124",
    "sklearn": "python -c 'from dpbayes.sklearn import PrivateCategoricalNB'",
    "codebooks": "python -c 'import pyreadstat'",
    "postgres": "python -c 'import psycopg'",
    "opendp": "python -c 'import opendp.prelude'",
    "arviz": "python -c 'import arviz, xarray'",
    "networks": "python -c 'import pgmpy, networkx'",
    "spark": "python -c 'import pyspark'",
}
"""One command for each extra that fails without it."""


def run(command: str, folder: Path = ROOT, environment: Path | None = None, **more: str) -> str:
    """What a command prints; the end of its output if it fails."""
    path = [] if environment is None else [str(environment / "bin")]
    settings = os.environ | {"PATH": os.pathsep.join([*path, os.environ["PATH"]]), "PYTHONPATH": ""} | more
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"dist: failed ({done.returncode}): {command}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build() -> tuple[Path, Path]:
    """Archive and wheel; a second build has to give the same bytes."""
    shutil.rmtree(DIST, ignore_errors=True)
    hatchling = f"{shlex.quote(sys.executable)} -m hatchling build -d"
    with tempfile.TemporaryDirectory() as again:
        run(f"{hatchling} {DIST}", SOURCE_DATE_EPOCH=EPOCH)
        run(f"{hatchling} {again}", SOURCE_DATE_EPOCH=EPOCH)
        for path in sorted(DIST.iterdir()):
            if digest(path) != digest(Path(again) / path.name):
                sys.exit(f"dist: two builds of {path.name} differ.")
    archive, wheel = DIST / f"{STEM}.tar.gz", DIST / f"{STEM}-py3-none-any.whl"
    held = set(zipfile.ZipFile(wheel).namelist())
    for needed in ("dpbayes/py.typed", f"{STEM}.dist-info/licenses/LICENSE", "dpbayes/studio/templates/base.html"):
        if needed not in held:
            sys.exit(f"dist: the wheel lacks {needed}.")
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    for needed in ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "src/dpbayes/py.typed", "tests/conftest.py"):
        if f"{STEM}/{needed}" not in names:
            sys.exit(f"dist: the source archive lacks {needed}.")
    if strays := [name for name in held if not name.startswith(("dpbayes/", f"{STEM}.dist-info/"))]:
        sys.exit(f"dist: the wheel holds {', '.join(strays[:3])}.")
    if (ROOT / ".git").exists():
        sources = {name.removeprefix(f"{STEM}/") for name in names} - {"PKG-INFO"}
        sources |= {f"src/{name}" for name in held if name.startswith("dpbayes/")}
        if strays := unknown(sources, ROOT):
            sys.exit(f"dist: git does not know {', '.join(strays[:3])}. Move it away: it would be published.")
    return archive, wheel


def unknown(names: set[str], clone: Path) -> list[str]:
    """Files that lie in a clone and are no part of it, such as a table and its ledger: the build takes them too."""
    return sorted(names - set(run("git -c core.quotePath=false ls-files", clone).splitlines()))


def environment(folder: Path) -> Path:
    """An empty environment, without what the system has."""
    run(f"{shlex.quote(sys.executable)} -m venv {folder}")
    return folder


def locked(folder: Path, lock: str) -> Path:
    """The versions of a lock as constraints. A wheel of our own has no digest there, so none is asked for."""
    lines = re.findall(r"^([\w.-]+==[^\\\n]+?) *\\?$", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    path = folder / f"{lock}.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def blocks(kind: str) -> list[str]:
    """The blocks of README of one language, without the line that installs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^(pip|make) .*\n", "", block, flags=re.MULTILINE) for block in found]


def try_wheel(wheel: Path, folder: Path) -> dict[str, list[dict[str, object]]]:
    """Install the wheel without the sources and run README; then extra by extra. What the core has is returned."""
    here, empty = folder / "survey", environment(folder / "environment")
    here.mkdir()
    run(f"pip install --quiet -c {locked(folder, 'requirements.lock')} {wheel}", folder, empty)
    for block in blocks("sh"):
        run(f"set -e\n{block}", here, empty)
    print("dist: README runs from the wheel alone")
    core = json.loads(run("pip inspect", folder, empty))
    extras = PROJECT["optional-dependencies"]
    if set(NEEDS_EXTRA) != set(extras):
        sys.exit(f"dist: expected a command for each extra, got {', '.join(NEEDS_EXTRA)}.")
    versions = locked(folder, "requirements-dev.lock")
    for extra, command in NEEDS_EXTRA.items():
        run(f"pip install --quiet -c {versions} 'dpbayes[{extra}] @ file://{wheel}'", folder, empty)
        run(command, here, empty)
        print(f"dist: {extra} works")
    run(f"pip install --quiet -c {versions} pandas", folder, empty)
    for block in blocks("python"):
        (here / "readme.py").write_text(block, encoding="utf-8")
        run("python readme.py", here, empty)
    return core


def bill_of_materials(installed: dict[str, list[dict[str, object]]], files: list[Path]) -> dict[str, object]:
    """What the wheel brings with it, as CycloneDX 1.6."""
    components = []
    for each in installed["installed"]:
        about = each["metadata"]
        assert isinstance(about, dict)
        name, version = about["name"], about["version"]
        if name not in ("dpbayes", "pip", "setuptools"):
            reference = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
            said = about.get("license_expression") or about.get("license") or ""
            licence = [{"license": {"name": said}}] if said and "\n" not in said else []
            found = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
            components.append(found | ({"licenses": licence} if licence else {}))
    ours = f"pkg:pypi/dpbayes@{PROJECT['version']}"
    marks = [{"alg": "SHA-256", "content": digest(path)} for path in files if path.suffix == ".whl"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, marks[0]["content"]).urn,
        "version": 1,
        "metadata": {
            "component": {
                "type": "library", "bom-ref": ours, "name": "dpbayes", "version": PROJECT["version"], "purl": ours,
                "licenses": [{"license": {"id": PROJECT["license"]}}], "hashes": marks,
            },
        },
        "components": sorted(components, key=lambda each: str(each["bom-ref"])),
    }  # fmt: skip


def recipe(archive: Path) -> None:
    """The recipe with the digest of the archive it takes."""
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    filled = re.sub(r"path: .*", f"path: {archive.name}\n  sha256: {digest(archive)}", text, count=1)
    (DIST / "recipe.yaml").write_text(filled, encoding="utf-8")


def container(folder: Path) -> None:
    """The build steps of the Containerfile, with folders for its places; then its command, without a network."""
    stages = re.split(r"^FROM .*\n", (ROOT / "packaging" / "Containerfile").read_text("utf-8"), flags=re.MULTILINE)
    source, made = folder / "source", folder / "opt"
    source.mkdir(parents=True)
    steps = stages[1].replace("\\\n", " ")
    for kind, rest in re.findall(r"^(COPY|RUN) (.*)$", steps, re.MULTILINE):
        words = shlex.split(rest)
        for name in words[:-1] if kind == "COPY" else ():
            copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copied(ROOT / name, source / (words[-1] if (ROOT / name).is_dir() else name))
        if kind == "RUN":
            run(rest.replace("/opt/dpbayes", str(made)).replace("python ", f"{shlex.quote(sys.executable)} "), source)
    data = folder / "data"
    data.mkdir()
    alone = "unshare --map-root-user --net " if shutil.which("unshare") else ""
    run(f"{alone}dpbayes example .", data, made)
    run(f"{alone}dpbayes release survey.csv region --epsilon 1 --ledger none", data, made)
    print(
        f"dist: the container's steps and its command run{', without a network' if alone else ''}; no engine was used"
    )


def main() -> None:
    """Build, try, write what belongs beside it."""
    archive, wheel = build()
    with tempfile.TemporaryDirectory(prefix="dpbayes-dist-") as scratch:
        bill = bill_of_materials(try_wheel(wheel, Path(scratch)), [wheel, archive])
        (DIST / f"{STEM}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
        container(Path(scratch) / "container")
    recipe(archive)
    files = sorted(path for path in DIST.iterdir() if path.name != "SHA256SUMS")
    (DIST / "SHA256SUMS").write_text("".join(f"{digest(path)}  {path.name}\n" for path in files), encoding="utf-8")
    for path in files:
        print(f"dist: {path.relative_to(ROOT)}, {path.stat().st_size / 1e3:,.0f} kB")


if __name__ == "__main__":
    main()
