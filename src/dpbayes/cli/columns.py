"""Columns of a file in memory, for commands that look at records one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpbayes.errors import TableError
from dpbayes.tables.sources import csv_header, file_source, parquet_names


def check_readable(path: str, names: Sequence[str]) -> None:
    """Refuse, from names alone, a file or columns that ``read_columns`` could not read. Reads no rows."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq"):
        raise TableError(f"Table: {path!r} is read record by record; its name must end in .csv or .parquet.")
    source = file_source(path)
    known = csv_header(source) if source.format == "csv" else parquet_names(source)
    if len(source.files) > 1:
        raise TableError(f"Table: {path!r} is read record by record; name one file.")
    for name in names:
        if name not in known:
            raise TableError(f"Table: there is no column {name!r} in {path!r}.")


def read_columns(path: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """These columns of a CSV file, as text, or of a Parquet file, as they are."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    check_readable(path, names)
    try:
        if path.lower().endswith(".csv"):
            text = csv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            )
            table = csv.read_csv(path, convert_options=text)
        else:
            table = parquet.read_table(path, columns=list(names))
    except OSError:
        raise TableError(f"Table: {path!r} cannot be read. Check that it exists and is complete.") from None
    except (pa.ArrowException, UnicodeError):
        raise TableError(f"Table: {path!r} is damaged, or not in the format that its name says.") from None
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}
