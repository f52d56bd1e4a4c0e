"""The eight scripts of the design run in one folder, in order, each at most eight lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpbayes.example import write_example

HEAD = "import dpbayes as dp, pandas\n"

SCRIPTS = {
    "first release": """
dp.Ledger("survey.ledger").open("survey.toml", dp.ApproxDP(6, 1e-6))
curator = dp.Curator("survey.csv")
release = curator.release(dp.Tables("region", "income|sex"), dp.ApproxDP(1, 1e-6), out="published/1")
release["income|sex"].plot("income.svg")
""",
    "posterior": """
sex = curator.release(dp.PosteriorTable("sex", prior=1), dp.PureDP(0.8))["sex"]
sex.plot("sex.svg"); sex.to_pandas()
""",
    "naive Bayes": """
nb = curator.release(dp.NaiveBayes("income"), dp.ApproxDP(1, 1e-6)).model()
nb.predict_proba({"sex": ["female"], "age": [41], "region": ["West"], "education": ["bachelor"]})
from dpbayes.sklearn import PrivateCategoricalNB
clf = PrivateCategoricalNB(epsilon=1, delta=1e-6, schema="survey.toml", target="income", ledger="survey.ledger")
X = pandas.read_csv("survey.csv", dtype=str); y = X.pop("income")
clf.fit(X, y).predict(X)
""",
    "network": """
nodes = "age", "education|age", "income|age,education"
curator.release(dp.BayesNet(*nodes), dp.ApproxDP(1, 1e-6)).model().plot("net.svg")
""",
    "synthetic records": """
curator.release(dp.Synthetic("income"), dp.ApproxDP(1, 1e-6)).model().synthesise(1000).to_pandas()
""",
    "someone else's release": """
checked = dp.load("published/1").verify()
known = dp.Posterior("published")
answer = known.ask("share(income='80k and over' | sex='male') - share(income='80k and over' | sex='female')")
""",
    "prices": """
draw = dp.Dirichlet(1, 10, "replace-one")
prices = draw.epsilon(1e-5), (3 * draw + dp.Gaussian(4, "replace-one")).epsilon(1e-6)
dp.calibrate(dp.Gaussian, dp.ApproxDP(1, 1e-6), "replace-one", times=21)
""",
    "the papers": """
from dpbayes.papers import rdp, tcdp, hellinger
rdp.algorithm_1([11, 8, 65, 25, 38, 0], order=5, epsilon=1); theorem = tcdp.theorem_2(alpha=10, delta=1e-5)
hellinger.M_H([49, 49], prior=(1, 1), epsilon=.8, delta=1e-8).loss
""",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory):
    """What the scripts leave behind: names, and a folder."""
    folder, names = tmp_path_factory.mktemp("scripts"), {}
    write_example(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(HEAD, names)
        for text in SCRIPTS.values():
            exec(text, names)
        yield names


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short(name: str) -> None:
    assert len(SCRIPTS[name].strip().splitlines()) <= 8


def test_the_scripts_do_what_they_say(ran) -> None:
    assert all(Path(name).stat().st_size > 1000 for name in ("income.svg", "sex.svg", "net.svg"))
    assert [round(price, 4) for price in ran["prices"]] == [1.8772, 4.1699]
    assert ran["clf"].ledger == "survey.ledger"
    assert ran["checked"].ok
    assert set(re.findall("^(pass|FAIL)", repr(ran["checked"]), re.MULTILINE)) == {"pass"}
    dp = ran["dp"]
    account = dp.Ledger("survey.ledger").account("example-survey")
    assert len(account.charges) == 6
    by_name = dp.verify("published/1", "survey.ledger")
    assert by_name.ok
    assert [check.name for check in by_name.checks][-2:] == ["files", "ledger"]
    assert dp.Posterior("published").releases[0].digest() == ran["release"].digest()
    with pytest.raises(dp.base.errors.ReleaseError, match="there twice"):
        dp.Posterior("published", "published/1")
    assert ran["known"]["region"].population.values.sum() == pytest.approx(1)


REPRS = Path(__file__).with_name("golden") / "reprs.txt"


def test_objects_say_what_they_are_on_a_line(ran) -> None:
    """Golden: numbers that noise decides are left out, all others are fixed."""
    dp = ran["dp"]
    release, account = ran["release"], dp.Ledger("survey.ledger").account("example-survey")
    plan = dp.Curator("survey.csv", ledger="none").plan(dp.Tables("region", "income|sex"), dp.ApproxDP(1, 1e-6))
    dp.Ledger("new.ledger").open("survey.toml", dp.ApproxDP(6, 1e-6))
    dp.Ledger("new.ledger").charge("example-survey", account.charges[1].cost)
    shown = {
        "Ledger": dp.Ledger("new.ledger"),
        "Release": release,
        "Release, read again": dp.load("published/1"),
        "Table": re.sub(r"\d\d?\.\d\d (?=±)", "… ", repr(release["region"])),
        "Answer": re.sub(r"0\.\d{4}", "…", repr(ran["answer"])),
        "Plan": plan,
        "Plan with its ledger": dp.Curator("survey.csv", ledger="new.ledger").plan(plan.job, plan.target),
        "Curator": ran["curator"],
        "Posterior": ran["known"],
        "Estimate": re.sub(r"[\d.]+ (?=±)", "… ", repr(ran["known"]["region"]).splitlines()[1]).strip(),
        "Request": dp.Request(tables=("region",), product="draw", target=dp.PureDP(1)),
        "Cost": 3 * ran["draw"],
    }
    text = "".join(f"[{name}] {each}\n" for name, each in shown.items())
    assert text == REPRS.read_text(encoding="utf-8")
