"""Models: shown, built from what is published, asked to predict, and drawn from. Free: only releases are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbayes.base import checks
from dpbayes.base.codec import to_record
from dpbayes.base.errors import InvalidArgument, ReleaseError, TableError
from dpbayes.cli.ask import found, of_one_data_set
from dpbayes.cli.command import Output, fresh, now, useless
from dpbayes.cli.output import print_table, say, tell, tell_people, tell_programs, warn, working
from dpbayes.jobs.model import named
from dpbayes.models.fidelity import Scores, fidelity, scores, shortfall
from dpbayes.models.histogram import Histogram
from dpbayes.models.latent import LatentModel
from dpbayes.models.model import Model, Published, built, distribution
from dpbayes.models.naive_bayes import NaiveBayesModel
from dpbayes.models.several import FEWEST, Several
from dpbayes.models.synthetic import check_place, columns_of, synthetic_table, writable, write_table
from dpbayes.release.format import Release
from dpbayes.schema.labels import codes
from dpbayes.tables.sources import csv_header, file_source, parquet_names

if TYPE_CHECKING:
    from dpbayes.cli.options import File, Text, Words


def model(source: Path, tables: Words = (), *, as_: Text, also: Words, plot: File, test: Text, out: File) -> Output:
    """Without --as the model is the one that was fitted, and the tables named are shown of it. With --as naive-bayes or
    network it is built: of a class, or of nodes with their parents.

    Example: dpbayes model published/2 --plot income.svg
    """
    releases = of_one_data_set([*found(source), *(each for path in also for each in found(Path(path)))])
    if as_ not in (None, "naive-bayes", "network"):
        raise InvalidArgument(f"model: expected --as naive-bayes or network, got {as_!r}.")
    made = built(releases, None if as_ is None else named(as_, tables))
    scored = None if test is None else _scores(made, test)
    nodes = tables if as_ is None else ()
    if lost := [name for name in nodes if name not in made.network.parents]:
        listed = ", ".join(made.network.nodes)
        raise ReleaseError(f"model: there is no attribute {lost[0]!r} in the model. It has {listed}.")
    if plot is not None:
        from dpbayes.plot import pictures
        from dpbayes.plot.canvas import stacked

        published = made.published.schema
        drawn = [pictures.network_picture(made.network, f"{made.kind} of {published.id}")]
        drawn += [pictures.table_picture(made.network, node, published) for node in nodes]
        drawn += [] if scored is None else [pictures.calibration_picture(scored)]
        stacked(drawn, drawn[0].title).save(plot)
    if out is not None:
        _write_network(made, out)
    summary = _summary(made, scored) | ({"tables of nodes": [_table(made, node) for node in nodes]} if nodes else {})

    def people() -> None:
        notes = [summary["statement"]]
        if scored is not None:
            notes.append(
                f"On {scored.records:,} public records: accuracy {scored.accuracy:.4f}, "
                f"cross-entropy {scored.cross_entropy:.4f}."
            )
        network = made.network
        rows = [(each, ", ".join(above) or "-", network.tables[each].size) for each, above in network.parents.items()]
        print_table(f"{made.kind} of {summary['dataset']}", ("node", "given", "cells"), rows, notes=notes)
        for table in summary.get("tables of nodes", ()):
            shown = [(index, *row) for index, row in enumerate(table["rows"][:40])]
            title = f"{table['node']} given {', '.join(table['given']) or 'nothing'}"
            print_table(title, ("row", *table["levels"]), shown)

    return Output(summary, people)


def _write_network(made: Model, out: Path) -> None:
    from dpbayes.base.files import write
    from dpbayes.models.network import to_bif

    fresh(out)
    if out.suffix == ".bif":
        write(out, to_bif(made.network, made.published.schema.id))
    elif out.suffix == ".json":
        import json

        write(out, json.dumps(to_record(made.network), indent=1, ensure_ascii=False))
    else:
        raise InvalidArgument(f"model: expected a file that ends in .bif or .json, got {out.name!r}.")


def _scores(made: Model, path: str) -> Scores:
    if not isinstance(made, NaiveBayesModel):
        raise ReleaseError(f"model: --test goes with naive-bayes models, not with {made.kind}.")
    target = made.spec.target
    columns = read_columns(path, (*made.features, target))
    return scores(made.predict_log_proba(columns), codes(made.published.schema[target], columns[target]))


def _summary(made: Model, scored: Scores | None) -> dict[str, Any]:
    release = made.published.releases[0]
    summary: dict[str, Any] = {
        "kind": made.kind,
        "statement": made.published.statement(),
        "guarantee": dict(release.promise.record()),
        "unit": dict(release.unit.record()),
        "dataset": release.dataset,
        "created": release.created,
        "seeded": release.seeded,
        "choice": release.choice,
        "network": to_record(made.network),
        "answers": {answer.name: list(answer.values) for answer in release.answers},
    }
    if scored is not None:
        summary["public test"] = {
            "records": scored.records,
            "accuracy": scored.accuracy,
            "cross_entropy": scored.cross_entropy,
        }
    return summary


def _table(made: Model, node: str) -> dict[str, Any]:
    network = made.network
    return {
        "node": node,
        "given": list(network.parents[node]),
        "levels": list(network.levels[node]),
        "rows": network.tables[node].tolist(),
    }


def predict(model: Path, table: str, *, out: File, probabilities: bool) -> Output:
    """Example: dpbayes predict published/2 survey.csv --out predicted.csv"""
    import pyarrow as pa

    read = Release.load(model).model()
    if not isinstance(read, NaiveBayesModel):
        raise ReleaseError(f"predict: expected a naive-bayes model, got {read.kind}. See `dpbayes model`.")
    if out is not None:
        fresh(writable(out))
    with working(now()):
        say("reading the records and predicting")
        log_proba = read.predict_log_proba(read_columns(table, read.features))
    best = np.array(read.classes, dtype=object)[log_proba.argmax(axis=1)]
    columns = {read.spec.target: pa.array(best, pa.string())}
    if probabilities:
        columns |= {f"P({level})": np.exp(log_proba[:, at]) for at, level in enumerate(read.classes)}
    predicted = pa.table(columns)
    if out is not None:
        write_table(predicted, out)
        return Output({"out": str(out), "rows": len(best)}, lambda: tell_people(f"Wrote {len(best):,} rows to {out}."))

    def rows() -> None:
        from pyarrow import csv

        buffer = pa.BufferOutputStream()
        csv.write_csv(predicted, buffer)
        tell_programs(buffer.getvalue().to_pybytes().decode("utf-8"))

    return Output(predicted.to_pydict() if now().json else None, rows)


def synth(
    source: Path,
    *,
    rows: int | None,
    out: File,
    seed: int | None,
    sets: int,
    independent: bool,
    also: Words,
    with_: Words,
) -> Output:
    """They go to records.csv unless --out names another file. With croissant metadata for machine learning is written
    beside them, with fidelity a page that says which pairs of attributes can be trusted.

    Example: dpbayes synth published/3 --rows 1000 --out records.parquet
    """
    releases = of_one_data_set([*found(source), *(each for path in also for each in found(Path(path)))])
    published = Published.of(releases)
    rows, out = published.schema.records if rows is None else rows, out or Path("records.csv")
    if rows is None:
        raise InvalidArgument("synth: the number of records is not public. Say how many with --rows.")
    pages = _checked(rows, out, sets, with_)
    with working(now()):
        say("fitting the model to what was released")
        if "model" in published.releases[0].job:
            made = built(published.releases)
        else:  # the largest joint table
            made = Histogram(attributes=distribution(published.tables).marginal.of).build(published)
        sets = _possible(made, sets)
        if sets > 1:
            say(f"drawing {sets} sets of {rows:,} records, each from a model of its own")
            _several(made, rows, sets, seed, out)
        else:
            say(f"drawing {rows:,} records")
            records = synthetic_table(made, rows, rng=np.random.default_rng(seed), even=not independent)
            say("comparing them with the release")
            distances = fidelity(published, columns_of(records))
            say("writing them")
            write_table(records, out)
    for remark in shortfall(made) if isinstance(made, LatentModel) else ():
        warn(now(), remark)
    if sets > 1:
        said = f"Wrote {sets} sets of {rows:,} records to {_numbered(out, 1, sets)} and so on. {published.statement()}"
        files = [str(_numbered(out, number, sets)) for number in range(1, sets + 1)]
        return Output({"files": files, "rows": rows}, lambda: tell(said))
    if "croissant" in with_:
        from dpbayes.report.companions import croissant_json

        text = croissant_json(published.releases[0], out, records.schema, rows)
        pages["croissant"].write_text(text, encoding="utf-8")
    if "fidelity" in with_:
        from dpbayes.report.companions import write_fidelity

        write_fidelity(published.releases[0], pages["fidelity"])
    written = [str(each) for each in (out, *pages.values())]

    def people() -> None:
        shown = [
            (names, entry["distance"], entry["noise"])
            for kind in ("one-way", "two-way")
            for names, entry in distances[kind].items()
        ]
        notes = ("A distance near the noise is as good as it gets.", published.statement())
        print_table("Total variation to the release", ("attributes", "distance", "noise alone"), shown, notes=notes)
        tell(f"Wrote {rows:,} records to {', '.join(written)}.")

    return Output({"files": written, "rows": rows, "distances": distances}, people)


def _checked(rows: int, out: Path, sets: int, with_: tuple[str, ...]) -> dict[str, Path]:
    """Refuse how many records there cannot be, and where they and their pages cannot go; where the pages go."""
    checks.positive_integer("synth", rows=rows, sets=sets)
    if unknown := set(with_) - {"croissant", "fidelity"}:
        raise InvalidArgument(f"synth: expected --with croissant or fidelity, got {min(unknown)!r}.")
    if sets > 1:
        useless("several sets", "with_", "independent")
    if 1 < sets < FEWEST:
        raise InvalidArgument(f"synth: expected {FEWEST} sets or more, got {sets}. Fewer cannot show a spread.")
    for each in [out] if sets == 1 else [_numbered(out, number, sets) for number in range(1, sets + 1)]:
        fresh(writable(each))
    ends = {"croissant": ".croissant.json", "fidelity": ".fidelity.html"}
    return {name: check_place(out.with_suffix(ends[name])) for name in with_}


def _possible(model: Model, sets: int) -> int:
    """One where the budget came to a model without fits: one set is written then, because it is paid for."""
    if sets == 1 or not isinstance(model, LatentModel) or model.form == "mixture":
        return sets
    warn(
        now(),
        f"the model came to {model.form}, and has no fits whose differences could tell how sure a number "
        "is. So one set is written. Ask the posterior of the release for intervals of the tables that were measured.",
    )
    return 1


def _several(model: Model, rows: int, sets: int, seed: int | None, out: Path) -> None:
    """Sets from as many models, each in a file of its own."""
    if not isinstance(model, LatentModel):
        raise InvalidArgument("synth: --sets needs a release for synthetic records of a whole table.")
    made = Several.of(model, sets).tables(rows, rng=np.random.default_rng(seed))
    for number, table in enumerate(made, start=1):
        write_table(table, _numbered(out, number, sets))


def _numbered(path: Path, number: int, most: int) -> Path:
    """records.csv becomes records-01.csv, records-02.csv, …"""
    return path.with_stem(f"{path.stem}-{number:0{len(str(most))}d}")


def read_columns(path: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """These columns of a CSV file, as text, or of a Parquet file, as they are."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    source = file_source(path)
    if source.format not in ("csv", "parquet") or len(source.files) > 1:
        raise TableError(f"Table: {path!r} is read record by record; name one file that ends in .csv or .parquet.")
    known = csv_header(source) if source.format == "csv" else parquet_names(source)
    if lost := [name for name in names if name not in known]:
        raise TableError(f"Table: there is no column {lost[0]!r} in {path!r}.")
    try:
        if source.format == "csv":
            text = csv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            )
            dialect = csv.ParseOptions(delimiter=source.options["delimiter"])
            with csv.open_csv(source.path, parse_options=dialect, convert_options=text) as parts:
                table = pa.Table.from_batches(parts, parts.schema)  # Ctrl-C is heard between two
        else:
            table = parquet.read_table(source.path, columns=list(names))
    except OSError:
        raise TableError(f"Table: {path!r} cannot be read. Check that it exists and is complete.") from None
    except (pa.ArrowException, UnicodeError):
        raise TableError(f"Table: {path!r} is damaged, or not in the format that its name says.") from None
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}
