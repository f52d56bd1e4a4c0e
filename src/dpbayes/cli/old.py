"""What commands and options of 0.2.0 are called now: one sentence each, in this version only."""

from __future__ import annotations

from dpbayes.cli import GROUPS

COMMANDS = {
    "affected": "",
    "build": "model SOURCE TABLE --as KIND",
    "cost": "price",
    "discover categories": "release DATA COLUMN --as categories",
    "discover edges": "release DATA COLUMN --as edges --set bounds=0:120",
    "estimate": "ask",
    "finish": "ledger finish",
    "fit naive-bayes": "release DATA CLASS --as naive-bayes",
    "fit bayes-net": "release DATA --as network",
    "ledger budget": "ledger limit",
    "ledger changed": "schema check DATA --read-rows",
    "ledger convert": "",
    "ledger export": "export LEDGER FILE",
    "ledger verify": "verify LEDGER",
    "posterior certify": "verify RELEASE --thorough",
    "posterior compare": "calibrate",
    "posterior draw": "release DATA TABLE --as vector",
    "posterior release": "release DATA TABLE --as posterior",
    "schema show": "schema check",
    "show": "model",
    "wide ask": "ask STATE",
    "wide open": "release DATA TABLE --as wide",
}
"""Each old command, and what is typed now; nothing where it went with 0.1.0."""

OPTIONS = {
    name: sentence
    for line in """
--order --rho --omega --mu: write --guarantee 'RDP(5, 1)', 'ZCDP(0.1)' or 'TCDP(0.1, 20)'
--dataset --id: the schema has the id of the data set
--adjacency --max-rows: the schema says it; without data write --unit add-remove:5
--no-ledger: write --ledger none
--not-private --seed: write --insecure-seed NUMBER
--engine: the address of the table says it
--marginal --column --attribute --table --feature: name the table as an argument, as in release survey.csv 'income|sex'
--target --graph --node: name the table as an argument, as in release survey.csv 'income|sex'
--want: write the accuracy behind the table, as in 'income|sex ± 1 point'
--ask: name the questions as arguments; schema init has --interactive
--title --author --contact --purpose --supersedes: write --set KEY=VALUE, or put the key into the request file
--mechanism --prior --scores --weight --concentration --bins: it is a key of what is made: --set KEY=VALUE
--law --tempered --not-tempered --pseudo-records --even-if-noise: it is a key of what is made: --set KEY=VALUE
--product: write --as draw or --as pseudo-records
--estimate: write --set single_draw=true
--low --high --numeric: write --set bounds=0:120, which says that it is a number too
--expected-records: write records_guess = 1000 into the schema
--accounting --calibration --score --around: the papers' choices are in dpbayes.papers
--slack --l2-squared --linf --least-count --evenness --error --failure --adaptive --closed: it is left to Python
--sigma --scale --from: write the mechanism as text, such as 'Dirichlet(1, 10)' or '3 * Gaussian(4)'
--chart --curve: write --plot
--measure: all measures are printed
--bif: write --out net.bif
--numbers: write --with parquet with dpbayes export
--croissant: write --with croissant
--fidelity: write --with fidelity
--report: it is always printed
--curator --curator-type --region --sector: write --set curator=…, and so on
--comment --reason: write --about
--forgo: write --give-up
--values: write --read-rows
--public-test: write --test
--host: write --expose ADDRESS
--releases: write --times
--browser: leave it out; --no-browser keeps it closed
--published: write --out
--state: it lies beside the table, as in survey.wide
--holds: write dpbayes verify RELEASE --ledger FILE
--exported: leave it out: the file says what it is
--where: name the row, as in "age|sex='male'"
""".strip().splitlines()
    for names, _, sentence in [line.partition(": ")]
    for name in names.split()
}
"""Options that no command has any more, and what took their place."""


def renamed(words: list[str]) -> str:
    """The sentence about an old command; nothing if it is none."""
    for name in (" ".join(words[:2]), words[0]):
        matching = [old for old in COMMANDS if old == name or (old.split()[0] == name and name not in GROUPS)]
        if matching:
            new = [f"`dpbayes {COMMANDS[old]}`" for old in matching if COMMANDS[old]]
            if not new:
                return f"{name} is gone since 0.1.0."
            return f"{name} is gone since 0.2.0: write {' or '.join(dict.fromkeys(new))}."
    return ""
