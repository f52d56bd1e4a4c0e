"""The grammar on the page of questions is the one that is read."""

from __future__ import annotations

import random
import re

import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.inference import question

RULES = dict(re.findall(r"^    (\w+) += (.+)$", question.__doc__ or "", re.MULTILINE))
TOKEN = re.compile(r'"([^"]+)"|(\w+)|([{}()|\[\]])')
WORDS = {
    "name": ["n{}", "'home town {}'", '"it""s {}"'],
    "level": ["male", "'80k and over'", "[30"],
    "number": ["2", "0.5"],
}


def drawn(rule: str, chance: random.Random, used: set[tuple[str, int]], depth: int = 0) -> str:
    """A sentence of this rule; ``used`` remembers which choices were made."""
    if rule in WORDS:
        return chance.choice(WORDS[rule]).format(chance.random())  # no name twice
    tokens = [match.groups() for match in TOKEN.finditer(RULES[rule])]

    def part(at: int, end: str) -> tuple[str, int]:
        """The alternatives up to a bracket, one of them chosen, and where they end."""
        choices, made = [], []
        while at < len(tokens) and tokens[at][2] != end:
            sign, name, mark = tokens[at]
            if mark == "|":
                choices.append(made)
                made = []
                at += 1
            elif mark:
                inner, at = part(at + 1, {"(": ")", "[": "]", "{": "}"}[mark])
                many = 1 if mark == "(" else chance.randrange(2) if depth < 6 else 0
                made.append(lambda inner=inner, many=many: " ".join(inner() for _ in range(many)))
            elif name:
                made.append(lambda name=name: drawn(name, chance, used, depth + 1))
                at += 1
            else:
                made.append(lambda sign=sign: sign)
                at += 1
        choices.append(made)

        def say() -> str:
            chosen = 2 if rule == "factor" and depth >= 6 else chance.randrange(len(choices))  # a number ends it
            used.add((rule, chosen))
            return " ".join(filter(None, (each() for each in choices[chosen])))

        return say, at + 1

    return part(0, "")[0]()


def test_every_sentence_of_the_grammar_is_read() -> None:
    used: set[tuple[str, int]] = set()
    for seed in range(400):
        question.read(drawn("question", random.Random(seed), used))
    assert {("factor", place) for place in range(5)} | {("condition", 0), ("condition", 1)} <= used


@pytest.mark.parametrize("wrong", ["", "count(", "share()", "1 +", "count(sex)", "count(sex='a') count()", "sex=1"])
def test_what_is_no_sentence_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match="at character"):
        question.read(wrong)
