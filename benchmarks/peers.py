"""dpbayes beside its peers: the same job for each, in one run, with seconds, their spread and what came out.

The first of several runs pays for loading and compiling; the median does not, the largest does.

Peers are an optional dependency group (``make peers``); one that is not installed is reported as absent.
"""

from __future__ import annotations

import contextlib
import io
import logging
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from dpbayes import ApproxDP, Attribute, Cost, Gaussian, Laplace, Schema, Unit, calibrate
from dpbayes.mechanisms.tuning import gaussian_noise

UNIT = Unit(adjacency="add-remove")
TARGET = ApproxDP(epsilon=1, delta=1e-6)
REPEAT = 3

Job = Callable[[], dict[str, float]]
"""Does the work once and says what came out."""


def run() -> dict[str, object]:
    warnings.simplefilter("ignore")
    logging.getLogger("absl").setLevel(logging.ERROR)
    return {
        "composition of 1,000 releases": compared(COMPOSITION),
        "naive Bayes, 200,000 × 20": compared(naive_bayes()),
        "synthetic records, 20,000 × 12": compared(synthetic(), repeat=2),
        "import": imports(),
    }


def compared(jobs: dict[str, Job], repeat: int = REPEAT) -> dict[str, object]:
    """Seconds of each job (median, least, most), its ratio to ours, and what it found."""
    seconds: dict[str, list[float]] = {}
    outcome: dict[str, dict[str, float]] = {}
    absent: dict[str, str] = {}
    for _ in range(repeat):
        for name, job in jobs.items():
            if name in absent:
                continue
            started = time.perf_counter()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    outcome[name] = job()
            except ImportError as missing:
                reason, _, _ = str(missing).partition(" (")  # without the path
                absent[name] = f"cannot be imported: {reason}"
                continue
            seconds.setdefault(name, []).append(time.perf_counter() - started)
    ours = statistics.median(seconds["dpbayes"])
    return {
        name: {
            "seconds": round(statistics.median(found), 4),
            "least": round(min(found), 4),
            "most": round(max(found), 4),
            "times dpbayes": round(statistics.median(found) / ours, 3),
            **{what: round(value, 4) for what, value in outcome[name].items()},
        }
        for name, found in seconds.items()
    } | absent


# -- composition: 500 Gaussian and 500 Laplace releases, ε at δ = 10⁻⁶ -----------------------------------------------


def _composed_by_us() -> dict[str, float]:
    from dpbayes.privacy import cost

    cost._one.cache_clear()
    cost._composed.cache_clear()
    total = Cost.of(Gaussian(sigma=60, unit=UNIT), 500) + Cost.of(Laplace(scale=90, unit=UNIT), 500)
    return {"epsilon": total.epsilon(1e-6)}


def _composed_by_dp_accounting() -> dict[str, float]:
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(60), 500)
    accountant.compose(dp_accounting.LaplaceDpEvent(90), 500)
    return {"epsilon": accountant.get_epsilon(1e-6)}


def _composed_by_autodp() -> dict[str, float]:
    from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism
    from autodp.transformer_zoo import Composition

    both = [GaussianMechanism(sigma=60), LaplaceMechanism(b=90)]
    return {"epsilon": float(Composition()(both, [500, 500]).get_approxDP(1e-6))}


COMPOSITION: dict[str, Job] = {
    "dpbayes": _composed_by_us,
    "dp-accounting (PLD)": _composed_by_dp_accounting,
    "autodp (RDP)": _composed_by_autodp,
}


# -- naive Bayes -----------------------------------------------------------------------------------------------------


def naive_bayes(rows: int = 200_000, columns: int = 20, levels: int = 10) -> dict[str, Job]:
    """Each column leans towards higher levels in class 1; numbers, so that a Gaussian model fits as well."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=rows)
    X = rng.binomial(levels - 1, 0.45 + 0.1 * y[:, None], size=(rows, columns))
    train, test = slice(rows // 2), slice(rows // 2, None)

    def scored(model: object) -> dict[str, float]:
        return {"accuracy": float(model.fit(X[train], y[train]).score(X[test], y[test]))}  # type: ignore[attr-defined]

    def ours() -> dict[str, float]:
        from dpbayes.sklearn import PrivateCategoricalNB

        categories = [range(levels)] * columns
        return scored(
            PrivateCategoricalNB(
                categories=categories, classes=[0, 1], epsilon=1.0, delta=1e-6, unit="one row per person"
            )
        )

    def scikit_learn() -> dict[str, float]:
        from sklearn.naive_bayes import CategoricalNB

        return scored(CategoricalNB(min_categories=levels))

    def diffprivlib() -> dict[str, float]:
        from diffprivlib.models import GaussianNB

        return scored(GaussianNB(epsilon=1.0, bounds=(0, levels - 1), priors=[0.5, 0.5]))

    return {
        "dpbayes": ours,
        "scikit-learn CategoricalNB (not private)": scikit_learn,
        "diffprivlib GaussianNB": diffprivlib,
    }


# -- synthetic records -----------------------------------------------------------------------------------------------


def synthetic(rows: int = 20_000, nodes: int = 12, levels: int = 5) -> dict[str, Job]:
    """A Markov chain. dpbayes and mbi are told its pairs; DataSynthesizer finds parents itself, from the same ε."""
    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(nodes)]
    columns = [rng.integers(levels, size=rows)]
    for _ in names[1:]:
        columns.append((columns[-1] + rng.binomial(levels - 1, 0.15, size=rows)) % levels)
    table = dict(zip(names, columns, strict=True))
    pairs = list(pairwise(names))

    def distance(made: dict[str, np.ndarray]) -> dict[str, float]:
        """Mean total variation of the pairs."""
        found = []
        for pair in pairs:
            true, drawn = (
                np.bincount(data[pair[0]] * levels + data[pair[1]], minlength=levels**2) / len(data[pair[0]])
                for data in (table, made)
            )
            found.append(0.5 * np.abs(true - drawn).sum())
        return {"distance of pairs": float(np.mean(found))}

    def ours() -> dict[str, float]:
        from dpbayes import BayesNet, Curator
        from dpbayes.tables.engine import CodedTable

        attributes = tuple(
            Attribute(name=name, categories=(*map(str, range(levels - 1)), "other"), missing="other") for name in names
        )
        schema = Schema(id="chain", unit=UNIT, attributes=attributes)
        graph = {"nodes": names, "edges": [list(pair) for pair in pairs]}
        model = Curator(CodedTable(table), schema).release(BayesNet.of(graph), TARGET, estimates=False).model()
        return distance(model.sample(rows, np.random.default_rng(1), even=True))

    def mbi() -> dict[str, float]:
        import jax

        jax.config.update("jax_enable_x64", True)
        from mbi import Dataset, Domain, LinearMeasurement
        from mbi.estimation import MirrorDescent

        domain = Domain(names, [levels] * nodes)
        private = Dataset(table, domain)
        noise = calibrate(gaussian_noise(UNIT), TARGET, times=len(pairs))
        measured = [
            LinearMeasurement(noise.draw(np.rint(private.project(pair).datavector()).astype(int)), pair, noise.sigma)
            for pair in pairs
        ]
        made = MirrorDescent().estimate(domain, measured).synthetic_data(rows)
        return distance({name: np.asarray(column).astype(int) for name, column in made.to_dict().items()})

    def data_synthesizer() -> dict[str, float]:
        from DataSynthesizer.DataDescriber import DataDescriber
        from DataSynthesizer.DataGenerator import DataGenerator

        with tempfile.TemporaryDirectory() as folder:
            path, described = Path(folder) / "chain.csv", Path(folder) / "chain.json"
            pd.DataFrame(table).to_csv(path, index=False)
            describer = DataDescriber(category_threshold=levels + 1)
            categorical = dict.fromkeys(names, True)
            describer.describe_dataset_in_correlated_attribute_mode(
                dataset_file=str(path), k=1, epsilon=TARGET.epsilon, attribute_to_is_categorical=categorical
            )
            describer.save_dataset_description_to_file(str(described))
            generator = DataGenerator()
            generator.generate_dataset_in_correlated_attribute_mode(rows, str(described))
            made = generator.synthetic_dataset
        return distance({name: made[name].astype(int).to_numpy() for name in names})

    return {"dpbayes": ours, "mbi": mbi, "DataSynthesizer": data_synthesizer}


# -- import time -----------------------------------------------------------------------------------------------------


def imports() -> dict[str, object]:
    """Seconds from a new interpreter to a usable library."""
    statements = {
        "dpbayes": "from dpbayes import Dirichlet, Cost, ApproxDP",
        "dp-accounting": "import dp_accounting.pld.privacy_loss_distribution",
        "opendp": "import opendp.prelude",
        "diffprivlib": "import diffprivlib.models",
        "autodp": "import autodp.mechanism_zoo",
        "mbi": "import mbi",
    }
    return compared({name: _imported(statement) for name, statement in statements.items()}, repeat=5)


def _imported(statement: str) -> Job:
    def job() -> dict[str, float]:
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", statement], check=False, capture_output=True)
        if done.returncode:
            raise ImportError(done.stderr.decode().strip().splitlines()[-1].partition(": ")[2])
        return {}

    return job
