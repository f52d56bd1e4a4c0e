"""The parameters of a Dirichlet posterior, released whole: not one draw from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.design.noise import Need, Wish, mechanisms_for
from dpbayes.design.plan import Drawn, Plan
from dpbayes.hellinger import calibration as calibrations
from dpbayes.hellinger import candidates
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.certificate import affordable
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.inference.importance import chance_of_noise, error
from dpbayes.jobs.base import BaseJob, Make, check_tables
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.format import Paid, Table
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.tables.engine import Engine

How = Literal["auto", "hellinger", "exponential", "laplace", "improved-laplace"]
Backing = Literal["best", "certified", "proved", "published"]
Score = Literal["hellinger", "kl", "total-variation"]

PosteriorMechanism = Hellinger | PosteriorExponential | PosteriorLaplace
Chosen = PosteriorMechanism | Laplace | Gaussian


@dataclass(frozen=True, slots=True)
class PosteriorTable(BaseJob):
    """The posterior Dir(prior + counts) of a joint table whose size the schema declares.

    ``prior`` has one number for all cells or one for each. ``mechanism`` is how: ``auto`` takes the noise with
    which shares are expected to be nearest, from public numbers alone. ``calibration`` is what backs the Hellinger
    mechanism: ``best`` is certified where that can be enumerated. ``around`` is a public guess of the table, never the
    table itself, to tune for. ``even_if_noise`` confirms a release that more often than not is a table drawn at random.
    """

    kind: ClassVar[str] = "posterior"
    MAKES: ClassVar[Mapping[str, Make]] = {
        "posterior": Make("one joint table", ("prior", "mechanism", "even_if_noise"))
    }
    marginal: Marginal
    prior: tuple[float, ...] = (1.0,)
    _: KW_ONLY
    mechanism: How = "auto"
    calibration: Backing = "best"
    score: Score = "hellinger"
    around: tuple[int, ...] = ()
    even_if_noise: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "marginal", Marginal.of_text(self.marginal))
        prior = self.prior if isinstance(self.prior, (tuple, list)) else (self.prior,)
        object.__setattr__(self, "prior", tuple(float(value) for value in prior))
        object.__setattr__(self, "around", tuple(self.around))
        for name, choices in (("mechanism", How), ("calibration", Backing), ("score", Score)):
            checks.one_of("PosteriorTable", get_args(choices), **{name: getattr(self, name)})
        checks.positive("PosteriorTable", **{f"prior[{at}]": value for at, value in enumerate(self.prior)})
        if self.marginal.given:
            raise InvalidArgument(
                "PosteriorTable: expected a joint table such as sex,income. The candidates of this mechanism are "
                "all tables of one known size, and the rows of a conditional table have none."
            )

    def plan(self, schema: Schema, target: Guarantee) -> Plan:
        """Calibrate the mechanism for a table of the declared size."""
        if schema.records is None:
            raise SchemaError("PosteriorTable: expected the schema to declare records, the public number of records.")
        candidates.check_unit("PosteriorTable", schema.unit)
        check_tables(schema, [self.marginal])
        cells = self.marginal.size(schema)
        prior = self.prior * cells if len(self.prior) == 1 else self.prior
        if len(prior) != cells:
            raise InvalidArgument(f"PosteriorTable: expected one parameter of the prior, or {cells}, got {len(prior)}.")
        made, choice = self._chosen(prior, schema.records, target, schema)
        return Plan(
            job=self,
            schema=schema,
            target=target,
            paid=(Paid(mechanism=made),),
            choice=choice,
            about=f"posterior of {self.marginal}",
            columns=self.marginal.names,
        )

    def _chosen(self, prior: tuple[float, ...], total: int, target: Guarantee, schema: Schema) -> tuple[Chosen, str]:
        """The mechanism, and why; one that mostly publishes noise is refused unless that is confirmed."""
        if self.mechanism == "auto":
            return self._best(prior, total, target, schema)
        made = self.calibrated(prior, total, target, schema)
        backing = made.calibration if isinstance(made, Hellinger) else "proved"
        choice = f"{self.mechanism}: asked for; the guarantee is {backing}"
        if getattr(made, "score", "hellinger") != "hellinger":
            return made, f"{choice}; its parameters alone are published, since no estimates can be made from them"
        if isinstance(made, PosteriorLaplace):
            return made, choice
        lost = chance_of_noise(made)
        said = f"with probability {lost:.2g}, on average over the prior, what it publishes is a table drawn at random"
        if lost > 0.5 and not self.even_if_noise:
            raise InvalidArgument(
                f"PosteriorTable: {said}. Leave mechanism at auto, or confirm it with "
                "even_if_noise (--set even_if_noise=true)."
            )
        return made, f"{choice}; {said}"

    def _best(self, prior: tuple[float, ...], total: int, target: Guarantee, schema: Schema) -> tuple[Chosen, str]:
        """The noise with which shares are expected to be nearest.

        The Hellinger mechanism is not tried: it was behind in every setting measured.
        """
        epsilon, delta = _epsilon_delta(target)
        wishes: tuple[Wish, ...] = ("laplace", "gaussian") if delta else ("laplace",)
        made: dict[str, Any] = {}
        for wish in wishes:
            need = Need(target=target, unit=schema.unit, cells=(len(prior),), records=total, wish=wish)
            made[f"{wish} noise on every count"] = mechanisms_for(need)[0][0]
        if len(prior) == 2:
            made["laplace noise on one count, cut to what is possible"] = PosteriorLaplace.at(
                prior=prior, total=total, epsilon=epsilon, unit=schema.unit
            )
        errors = {name: error(each, prior, total) for name, each in made.items()}
        best = min(errors, key=lambda name: errors[name])
        found = f"auto: {best}, by which a share is expected to be {100 * errors[best]:.2g} points off"
        return made[best], f"{found}, sampling and prior included; no data was read"

    def calibrated(self, prior: tuple[float, ...], total: int, target: Guarantee, schema: Schema) -> PosteriorMechanism:
        """The mechanism that meets the target: pure, or (ε, δ)."""
        (epsilon, delta), unit = _epsilon_delta(target), schema.unit
        common: dict[str, Any] = {"prior": prior, "total": total, "epsilon": epsilon, "unit": unit}
        guess = [list(self.around)] if self.around else None
        if self.mechanism == "exponential":
            return PosteriorExponential(prior=prior, total=total, sharpness=epsilon, score=self.score, unit=unit)
        if self.mechanism != "hellinger":
            return PosteriorLaplace.at(**common, truncated=self.mechanism == "improved-laplace")
        backed = self.calibration
        if backed == "best":
            backed = "certified" if affordable(prior, total) else "proved"
        if backed == "certified":
            return calibrations.certified(**common, delta=delta, around=guess)
        if backed == "published":
            if not delta:
                raise InvalidArgument("PosteriorTable: the published calibration needs a δ.")
            return calibrations.published(**common, delta=delta)
        if not delta:
            return calibrations.with_global(**common)
        return calibrations.proved(**common, delta=delta, around=guess)

    def draw(self, table: Engine, plan: Plan, rng: np.random.Generator | None) -> Drawn:
        """Count the table, and release one set of parameters."""
        (counts,) = table.count(plan.schema, [self.marginal])
        made: Chosen = plan.paid[0].mechanism  # type: ignore[assignment]
        parameters = made.draw(counts.array.ravel(), rng)
        if not hasattr(made, "prior"):  # noise on every count
            parameters = parameters + np.asarray(self.prior)
        drawn = Table(marginal=self.marginal, by=0, kind="parameters", values=np.asarray(parameters, dtype=np.float64))
        return Drawn(tables=(drawn,), records=plan.schema.records)


JOB = PosteriorTable


def _epsilon_delta(target: Guarantee) -> tuple[float, float]:
    if target.epsilon_delta is None:
        raise InvalidArgument("PosteriorTable: expected a pure or an (ε, δ) guarantee.")
    return target.epsilon_delta
