"""Columns of a file in memory, for commands that look at records one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpbayes.errors import TableError


def read_columns(path: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """These columns of a CSV file, as text, or of a Parquet file, as they are."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq"):
        raise TableError(f"Table: {path!r} is read record by record; its name must end in .csv or .parquet.")
    try:
        if suffix == ".csv":
            known = csv.open_csv(path).schema.names
            text = csv.ConvertOptions(
                include_columns=[name for name in names if name in known],
                column_types=dict.fromkeys(known, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            )
            table = csv.read_csv(path, convert_options=text)
        else:
            known = parquet.read_schema(path).names
            table = parquet.read_table(path, columns=[name for name in names if name in known])
    except OSError:
        raise TableError(f"Table: {path!r} cannot be read. Check that it exists and is complete.") from None
    except pa.ArrowException:
        raise TableError(f"Table: {path!r} is damaged, or not in the format that its name says.") from None
    for name in names:
        if name not in known:
            raise TableError(f"Table: there is no column {name!r} in {path!r}.")
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}
