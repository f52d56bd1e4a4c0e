"""\"The same on the command line\" is the same: every command that a page shows runs, and gives the page's numbers."""

from __future__ import annotations

import contextlib
import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from tests.commands import Done, dpbayes
from tests.studio.house import Visitor, begun, declared, ready, released, survey, text_of

from dpbayes.base.display import rounded_up


def shown(answer) -> list[str]:
    """The commands of a page."""
    blocks = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", answer.text, re.DOTALL)
    return [line for block in blocks for line in unescape(block).splitlines()]


def run(command: str) -> Done:
    """A command in the current folder; what a shell would do with ``printf … > file`` is done by hand."""
    words = shlex.split(command)
    if words[0] == "printf":
        assert words[1] == "%s"
        Path(words[4]).write_text(words[2], encoding="utf-8")
        return Done(code=0, out="", err="")
    assert words[0] == "dpbayes"
    done = dpbayes(*words[1:])
    assert done.code == 0, f"{command}\n{done.err}"
    return done


def said(visitor: Visitor, path: str) -> str:
    """What the commands of a page print, run in its folder."""
    answer = visitor.get(path)
    assert answer.status_code == 200, text_of(answer)
    with contextlib.chdir(visitor.desk.folder.start):
        return "".join(re.sub(r"\s+", " ", done.out) for done in map(run, shown(answer)))


@pytest.fixture
def visitor(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return Visitor(survey(tmp_path))


def test_every_command_of_every_page_runs_before_anything_is_released(visitor, tmp_path):
    (tmp_path / "nothing").mkdir()
    assert shown(Visitor(tmp_path / "nothing").get("/")) == []
    said(visitor, "/")
    name = begun(visitor)
    said(visitor, f"/d/{name}/table")
    said(visitor, f"/d/{name}/declare")
    assert visitor.post(f"/d/{name}/declare", declared(visitor, name)).status_code == 303
    assert shown(visitor.get(f"/d/{name}/ask")) == []  # nothing is asked for yet


def test_every_command_of_every_page_gives_the_numbers_of_the_page(visitor, tmp_path):
    name = ready(visitor)
    for step in ("table", "declare", "ask", "preview"):
        assert said(visitor, f"/d/{name}/{step}"), step
    risk = re.search(r"The best attacker ([\d.]+ %)", text_of(visitor.get(f"/d/{name}/risk")))
    assert f"the best attacker is right in at most {risk[1]}." in said(visitor, f"/d/{name}/risk")
    (before,) = shown(visitor.get(f"/d/{name}/review"))
    forecast = re.findall(r"± (\d+) records", text_of(visitor.get(f"/d/{name}/review")))
    with contextlib.chdir(tmp_path):
        dry = re.sub(r"\s+", " ", run(before + " --dry-run").out)
    assert all(f"± {each}" in dry or "group of average size" in dry for each in forecast)
    folder = released(visitor, name)
    for path in (f"/release?at={folder}", "/", "/models", "/models?kind=naive-bayes&target=income", "/explain"):
        assert said(visitor, path), path
    edges = "/models?kind=network&edges=sex -> income"
    assert "income" in said(visitor, edges)
    asked = "/explain?ask=count(region='North')"
    number = re.search(r"between ([\d,]+) and ([\d,]+)", text_of(visitor.get(asked)))
    (command,) = shown(visitor.get(asked))
    with contextlib.chdir(tmp_path):
        told = re.findall(r'"(?:lower|upper)": ([\d.]+)', run(f"{command} --json").out)
    assert [f"{float(each):,.0f}" for each in told] == [number[1], number[2]]
    draft = visitor.desk.drafts.load(name)
    assert "pass seal" in said(visitor, f"/d/{name}/released/{draft.once}")


def test_the_command_of_review_charges_what_the_page_says(visitor, tmp_path):
    name = ready(visitor)
    page = text_of(visitor.get(f"/d/{name}/review"))
    with contextlib.chdir(tmp_path):
        for command in shown(visitor.get(f"/d/{name}/review")):
            run(command)
    account = visitor.desk.account(visitor.desk.drafts.load(name))
    assert f"This release ε = {rounded_up(account.spent, 3)}" in page
