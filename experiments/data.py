"""The eight data sets of [RDP] Table 1: from a folder of Parquet files, from the cache, or from the UCI repository.

``DPBAYES_DATA`` names the folder; without it ../shared/datasets is taken if it is there. Otherwise a data set is
downloaded once and kept in the cache (``XDG_CACHE_HOME``, else ~/.cache, folder dpbayes), from where it is read without
a network ever after. ``DPBAYES_UCI`` is the address of another copy of the repository. Whatever the way, the content of
the table is checked against its digest.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from functools import cache
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pandas as pd

from dpbayes.base.errors import DpbayesError
from experiments import uci

SHARED = Path(__file__).resolve().parents[2] / "shared" / "datasets"
REPOSITORY = "https://archive.ics.uci.edu"
SECONDS = 60.0
OLD = "ml/machine-learning-databases"
SOURCES = {
    "creditcard": uci.Source(
        paths=("static/public/350/data.csv",),
        convert=uci.creditcard,
        digest="803cb5afc441ee4cf8603b2bb30d4c504fe3b21ada2a308aac7af60cab13ccab",
    ),
    "thyroid": uci.Source(
        paths=(f"{OLD}/thyroid-disease/ann-train.data", f"{OLD}/thyroid-disease/ann-test.data"),
        convert=uci.thyroid,
        digest="bc7ebc88f08e93cd06f028e7ddb622b9297f2fc8b12857fa249b5a3b2d71afd7",
    ),
    "shopper": uci.Source(
        paths=(f"{OLD}/00468/online_shoppers_intention.csv",),
        convert=uci.shopper,
        digest="9893de6a096f40f5d35a4c51b512922935c94875652e71a58a31e452fe2e9689",
    ),
    "digit": uci.Source(
        paths=(f"{OLD}/optdigits/optdigits.tra", f"{OLD}/optdigits/optdigits.tes"),
        convert=uci.digit,
        digest="81cbebd2b291bec02a729468682aec6a569aa7908159a40e9d770439e0e96546",
    ),
    "germancredit": uci.Source(
        paths=(f"{OLD}/00522/SouthGermanCredit.zip!SouthGermanCredit.asc",),
        convert=uci.germancredit,
        digest="e1484e7cb21cfd2ccd9623af196d9a7431810c34a565e0b9aa92bb053b918cbf",
    ),
    "bank": uci.Source(
        paths=(f"{OLD}/00222/bank-additional.zip!bank-additional/bank-additional-full.csv",),
        convert=uci.bank,
        digest="8a8d8d5c528aad1d0e9ce3e5de4553a3ae56ef057d4f026d42d2a325622a9893",
    ),
    "spam": uci.Source(
        paths=(f"{OLD}/spambase/spambase.data",),
        convert=uci.spam,
        digest="10c54fb9bf563f89fb72ba43100a9bd07ca3893ec10ba28b52c20640f0443746",
    ),
    "adult": uci.Source(
        paths=(f"{OLD}/adult/adult.data", f"{OLD}/adult/adult.test"),
        convert=uci.adult,
        digest="8559d684ae1da719d97057f631a1d50f34a425a198981def72645acde83d664a",
    ),
}


class DataUnavailable(DpbayesError):  # noqa: N818 - named like the errors of dpbayes
    """A data set is not where it should be, or is not what it should be."""


def load(name: str) -> pd.DataFrame:
    """One data set, checked."""
    if name not in SOURCES:
        raise DataUnavailable(f"data: there is no data set {name!r}. They are {', '.join(SOURCES)}.")
    return _checked(located(name), name)


def located(name: str) -> Path:
    """The Parquet file of a data set; downloads it if it is nowhere."""
    if folder := os.environ.get("DPBAYES_DATA"):
        path = Path(folder) / f"{name}.parquet"
        if not path.is_file():
            raise DataUnavailable(f"data: DPBAYES_DATA is {folder}, which has no {path.name}. Add it, or unset it.")
        return path
    shared, kept = SHARED / f"{name}.parquet", cache_folder() / f"{name}.parquet"
    if shared.is_file():
        return shared
    if not kept.is_file():
        download(name, kept)
    return kept


def cache_folder() -> Path:
    """Where downloads are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpbayes"


def download(name: str, path: Path) -> None:
    """Fetch the raw files, convert and check them, and keep the table; nothing is left behind otherwise."""
    source, base = SOURCES[name], os.environ.get("DPBAYES_UCI", REPOSITORY).rstrip("/")
    print(f"{name}: downloading from {base}", file=sys.stderr)
    files = [_fetched(f"{base}/{address}", name) for address in source.paths]
    try:
        frame = source.convert(files)
    except (ValueError, KeyError) as problem:
        raise DataUnavailable(
            f"data: what {base} sent for {name} is not in the format of the UCI repository ({problem}). Set "
            f"DPBAYES_DATA to a folder that has {name}.parquet."
        ) from None
    _compare(frame, name, base)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    frame.to_parquet(unfinished, index=False, compression="zstd")
    unfinished.replace(path)


def digest(frame: pd.DataFrame) -> str:
    """SHA-256 over names, kinds of columns (integer, float, text) and all values."""
    kinds = ",".join(kind if (kind := frame[column].dtype.kind) in "if" else "s" for column in frame.columns)
    text = kinds + "\n" + frame.to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


def _fetched(address: str, name: str) -> bytes:
    url, _, member = address.partition("!")
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            raw: bytes = answer.read()
        return zipfile.ZipFile(BytesIO(raw)).read(member) if member else raw
    except HTTPError as problem:
        reason = f"answered {problem.code}"
        problem.close()
    except (zipfile.BadZipFile, KeyError):
        reason = f"is not an archive with {member}"
    except (OSError, HTTPException, ValueError) as problem:
        reason = f"cannot be read ({problem})"
    raise DataUnavailable(
        f"data: {name} is neither in a folder nor in the cache, and {url} {reason}. Connect to the network, or set "
        f"DPBAYES_DATA to a folder that has {name}.parquet."
    )


@cache
def _checked(path: Path, name: str) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    _compare(frame, name, str(path))
    return frame


def _compare(frame: pd.DataFrame, name: str, origin: str) -> None:
    if (found := digest(frame)) != SOURCES[name].digest:
        raise DataUnavailable(
            f"data: {name} from {origin} has the digest {found[:12]}…, expected {SOURCES[name].digest[:12]}…: its "
            "content differs. Remove the file, or take another copy."
        )
