"""Reproduce the papers: ``python -m experiments [name …] [--quick] [--fresh] [--jobs N]``.

Without names all experiments run, but for those whose data sets cannot be had: these are named before anything runs.
Each is written when it is complete. Stop it at any time; the next run goes on. ``--quick`` takes minutes and writes to
out/reproduce-quick; the full run writes experiments/results and docs/reproduction, and the page of claims.
"""

from __future__ import annotations

import argparse
import sys

from dpbayes.base.errors import DpbayesError
from experiments import lab, page
from experiments.rdp import models_page

EXPERIMENTS = (
    "rdp.introduction",
    "rdp.related",
    "rdp.figure1",
    "rdp.figure2",
    "rdp.theorem2",
    "rdp.table1",
    "rdp.figures3_4",
    "rdp.figure5",
    "rdp.figure6",
    "rdp.authors",
    "rdp.figure7",
    "rdp.proposition3",
    "tcdp.figure1_left",
    "tcdp.figure1_right",
    "tcdp.figure2",
    "tcdp.figure3",
    "tcdp.appendix_c",
    "tcdp.appendix_d",
    "tcdp.sample_sizes",
    "hellinger.abstract_figure1",
    "hellinger.crossing",
    "hellinger.abstract_figure2",
    "hellinger.abstract_figure3",
    "hellinger.beyond",
    "hellinger.notes_figure1",
    "hellinger.notes_figures2_4",
    "hellinger.notes_figures5_8",
)
"""In the order of the page."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, written to out/reproduce-quick")
    parser.add_argument("--fresh", action="store_true", help="measure again what was kept from earlier runs")
    parser.add_argument("--restate", action="store_true", help="claims and figures anew from stored rows; runs nothing")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.names) - set(EXPERIMENTS):
        parser.error(f"no experiment named {', '.join(sorted(unknown))}")
    experiments = [lab.Experiment(name, asked.quick) for name in asked.names or EXPERIMENTS]
    quick = lab.ROOT / "out" / "reproduce-quick"
    folders = (quick, quick) if asked.quick else (lab.RESULTS, lab.FIGURES)
    absent = {} if asked.restate else lab.without_data(experiments)
    if absent:
        told = f"{', '.join(each.name for each in absent)} cannot run: {next(iter(absent.values()))}"
        if asked.names:
            raise DpbayesError(told)
        print(f"{told} The others run.", file=sys.stderr)
    written: list[lab.Experiment] = []

    def finish(experiment: lab.Experiment) -> None:
        (lab.restate if asked.restate else lab.write)(experiment, *folders)
        written.append(experiment)

    chosen = [experiment for experiment in experiments if experiment not in absent]
    try:
        if asked.restate:
            for experiment in chosen:
                finish(experiment)
        else:
            lab.run(chosen, finish, jobs=asked.jobs, fresh=asked.fresh)
    finally:
        if written:
            page.write(*folders)
            if not asked.quick:
                models_page.write()
        place = (folders[1] / "index.md").relative_to(lab.ROOT)
        print(f"{len(written)} of {len(experiments)} experiments written; open {place}.", file=sys.stderr)
    if absent:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DpbayesError as problem:
        sys.exit(str(problem))
