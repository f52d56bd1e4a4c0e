"""The privacy core: calibration, composition, import time."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from dpbayes import RDP, TCDP, ApproxDP, Cost, Dirichlet, Gaussian, Laplace, Unit
from dpbayes.mechanisms.tuning import ConcentrationCurve, dirichlet_at_weight, gaussian_noise
from dpbayes.privacy import cost as pricing
from dpbayes.privacy.calibrate import calibrate
from dpbayes.schema import Adjacency

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def seconds(action: Callable[[], object], repeat: int = 7) -> dict[str, float]:
    """Median and range of several runs, caches emptied before each."""
    found = []
    for _ in range(repeat):
        pricing._one.cache_clear()
        pricing._composed.cache_clear()
        started = time.perf_counter()
        action()
        found.append(time.perf_counter() - started)
    return {"median": statistics.median(found), "least": min(found), "most": max(found)}


def import_seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(7)]
    return statistics.median(runs)


def mixed(count: int) -> Cost:
    """A cost of ``count`` releases, all of them different."""
    makers: list[Callable[[int], Dirichlet | Gaussian | Laplace]] = [
        lambda i: Dirichlet(weight=0.05 + 1e-5 * i, concentration=20 + 0.01 * i, unit=UNIT),
        lambda i: Gaussian(sigma=60 + 0.01 * i, unit=UNIT),
        lambda i: Laplace(scale=90 + 0.01 * i, unit=UNIT),
    ]
    return Cost.total([makers[i % 3](i) for i in range(count)])


def run() -> dict[str, object]:
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401 - measured apart from the work

    approx = ApproxDP(epsilon=1, delta=1e-6)
    calibrations = {
        "dirichlet at one weight, (1, 1e-6)": lambda: calibrate(dirichlet_at_weight(1.0, UNIT), approx),
        "dirichlet at one weight, (1, 1e-6), 21 releases": lambda: calibrate(
            dirichlet_at_weight(1.0, UNIT), approx, times=21
        ),
        "dirichlet at one weight, RDP": lambda: calibrate(dirichlet_at_weight(1.0, UNIT), RDP(order=5, epsilon=0.1)),
        "dirichlet at one weight, tCDP": lambda: calibrate(dirichlet_at_weight(1.0, UNIT), TCDP(rho=0.1, omega=10)),
        "gaussian, (1, 1e-6), 21 releases": lambda: calibrate(gaussian_noise(UNIT), approx, times=21),
        "dirichlet, best weight for a draw, RDP": lambda: ConcentrationCurve(
            target=RDP(order=5, epsilon=1), unit=UNIT
        ).best(cells=10, records=1000),
        "dirichlet, best weight for an estimate, (1, 1e-6), 21 releases": lambda: ConcentrationCurve(
            target=approx, unit=UNIT, releases=21
        ).best(purpose="estimate", cells=10, records=1000),
    }
    few = Cost.of(Dirichlet(weight=0.05, concentration=20, unit=UNIT), 334)
    few = few + Cost.of(Gaussian(sigma=60, unit=UNIT), 333) + Cost.of(Laplace(scale=90, unit=UNIT), 333)
    ours, bare = import_seconds("import dpbayes"), import_seconds("import numpy, scipy.special")
    all_names = import_seconds("import dpbayes; [getattr(dpbayes, n) for n in ('Dirichlet', 'Cost', 'ApproxDP')]")
    return {
        "calibration_seconds": {name: seconds(action) for name, action in calibrations.items()},
        "compose_1000_of_3_kinds_seconds": seconds(lambda: few.epsilon(1e-6)),
        "compose_1000_all_different_seconds": seconds(lambda: mixed(1000).epsilon(1e-6), repeat=3),
        "compose_growth_seconds": {
            str(n): seconds(lambda n=n: mixed(n).epsilon(1e-6), repeat=1)["median"] for n in (10, 100, 1000)
        },
        "import_seconds": {"dpbayes": ours, "dpbayes core names": all_names, "numpy and scipy.special": bare},
        "import_ratio": ours / bare,
        "import_ratio_core_names": all_names / bare,
    }
