"""The data sets of the experiments: found, downloaded, converted and checked, or refused in one sentence."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from experiments import data, uci

ADULT_TRAIN = (
    b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    b"United-States, <=50K\n"
    b"54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian, Male, 0, 0, 60, South, >50K\n"
    b"\n"
)
ADULT_TEST = (
    b"|1x3 Cross validator\n"
    b"25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, "
    b"United-States, <=50K.\n"
    b"44, Private, 160323, Some-college, 10, Married-civ-spouse, Machine-op-inspct, Husband, Black, Male, 7688, 0, 40, "
    b"United-States, >50K.\n"
)
CREDIT_LINE = b"24,2,2,-1,-1,-2,-2,3913,3102,689,0,0,0,0,689,0,0,0,0,1\n"
GERMAN_HEADER = (
    b"laufkont laufzeit moral verw hoehe sparkont beszeit rate famges buerge wohnzeit verm alter weitkred wohn "
    b"bishkred beruf pers telef gastarb kredit\n"
)


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files; of one named *truncated* it promises more than it sends."""

    def log_message(self, *_: object) -> None: ...

    def send_header(self, keyword: str, value: str) -> None:
        longer = keyword == "Content-Length" and "truncated" in self.path
        super().send_header(keyword, str(int(value) + 1) if longer else value)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the repository on this machine, an empty cache, and no other folder."""
    folder = tmp_path / "repository"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("DPBAYES_UCI", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DPBAYES_DATA", raising=False)
    monkeypatch.setattr(data, "SHARED", tmp_path / "nowhere")
    data._checked.cache_clear()
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def _offer_adult(folder: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Put a small Adult where the real one would be, and expect its digest."""
    frame = uci.adult([ADULT_TRAIN, ADULT_TEST])
    source = replace(data.SOURCES["adult"], digest=data.digest(frame))
    monkeypatch.setitem(data.SOURCES, "adult", source)
    for path, raw in zip(source.paths, (ADULT_TRAIN, ADULT_TEST), strict=True):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)
    return frame


def test_what_is_downloaded_once_is_read_without_a_network(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = _offer_adult(repository, monkeypatch)
    pd.testing.assert_frame_equal(data.load("adult"), expected)
    assert "adult: downloading from http://127.0.0.1" in capsys.readouterr().err
    data._checked.cache_clear()
    monkeypatch.setenv("DPBAYES_UCI", "http://127.0.0.1:1")
    pd.testing.assert_frame_equal(data.load("adult"), expected)
    assert capsys.readouterr().err == ""


def test_other_content_is_refused_and_not_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer_adult(repository, monkeypatch)
    (repository / data.SOURCES["adult"].paths[0]).write_bytes(ADULT_TRAIN.replace(b"2174", b"2175"))
    with pytest.raises(data.DataUnavailable, match="its content differs"):
        data.load("adult")
    assert not data.cache_folder().exists()


def test_a_damaged_cache_is_noticed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = _offer_adult(repository, monkeypatch)
    data.load("adult")
    data._checked.cache_clear()
    frame.assign(target=0).to_parquet(data.cache_folder() / "adult.parquet")
    with pytest.raises(data.DataUnavailable, match=r"adult\.parquet has the digest"):
        data.load("adult")


def test_a_truncated_download_is_refused_and_not_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer_adult(repository, monkeypatch)
    (repository / "truncated").write_bytes(ADULT_TRAIN)
    source = data.SOURCES["adult"]
    monkeypatch.setitem(data.SOURCES, "adult", replace(source, paths=("truncated", source.paths[1])))
    with pytest.raises(data.DataUnavailable, match="truncated cannot be read"):
        data.load("adult")
    assert not data.cache_folder().exists()


def test_without_network_and_cache_the_message_says_what_to_do(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPBAYES_UCI", "http://127.0.0.1:1")
    with pytest.raises(data.DataUnavailable, match="Connect to the network, or set DPBAYES_DATA"):
        data.load("spam")


def test_a_file_that_moved_is_named(repository: Path) -> None:
    with pytest.raises(data.DataUnavailable, match=r"spambase\.data answered 404"):
        data.load("spam")


def test_pages_that_are_not_data_are_refused(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer_adult(repository, monkeypatch)
    for name in ("spam", "bank"):
        path = repository / data.SOURCES[name].paths[0].partition("!")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<html>We have moved.</html>")
    with pytest.raises(data.DataUnavailable, match="not in the format"):
        data.load("spam")
    with pytest.raises(data.DataUnavailable, match="is not an archive with bank-additional/"):
        data.load("bank")


def test_an_archive_is_opened(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b'"age";"job";"nr.employed";"y"\n56;"housemaid";5191.5;"no"\n'
    source = data.SOURCES["bank"]
    path = repository / source.paths[0].partition("!")[0]
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bank-additional/bank-additional-full.csv", raw)
    monkeypatch.setitem(data.SOURCES, "bank", replace(source, digest=data.digest(uci.bank([raw]))))
    assert data.load("bank").to_dict("records") == [{"age": 56, "job": "housemaid", "nr.employed": 5191.5, "target": 0}]


def test_a_named_folder_is_taken_and_nothing_else(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = _offer_adult(repository, monkeypatch)
    monkeypatch.setenv("DPBAYES_DATA", str(tmp_path))
    with pytest.raises(data.DataUnavailable, match=r"which has no adult\.parquet"):
        data.load("adult")
    frame.to_parquet(tmp_path / "adult.parquet")
    pd.testing.assert_frame_equal(data.load("adult"), frame)


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(data.DataUnavailable, match="no data set 'iris'"):
        data.load("iris")


def test_the_digest_tells_numbers_from_texts() -> None:
    assert data.digest(pd.DataFrame({"a": [1]})) != data.digest(pd.DataFrame({"a": ["1"]}))
    assert data.digest(pd.DataFrame({"a": [0.1]})) == data.digest(pd.DataFrame({"a": [0.1]}))


def test_adult_keeps_question_marks_and_loses_dots() -> None:
    frame = uci.adult([ADULT_TRAIN, ADULT_TEST])
    assert frame["target"].tolist() == [0, 1, 0, 1]
    assert frame["workclass"].tolist() == ["State-gov", "?", "Private", "Private"]
    assert list(frame.columns[:3]) == ["age", "workclass", "fnlwgt"]
    assert frame["capital-gain"].tolist() == [2174, 0, 0, 7688]


def test_creditcard_has_labels_for_documented_codes() -> None:
    header = b"ID," + b",".join(b"X%d" % number for number in range(1, 24)) + b",Y\n"
    frame = uci.creditcard([header + b"1,20000,2,2,1," + CREDIT_LINE + b"2,20000,1,5,0," + CREDIT_LINE])
    assert frame["SEX"].tolist() == ["female", "male"]
    assert frame["EDUCATION"].tolist() == ["university", "undocumented 5"]
    assert frame["MARRIAGE"].tolist() == ["married", "undocumented 0"]
    assert frame.iloc[0][["LIMIT_BAL", "AGE", "PAY_0", "PAY_6", "BILL_AMT1", "PAY_AMT2", "target"]].tolist() == [
        20000, 24, 2, -2, 3913, 689, 1,
    ]  # fmt: skip


def test_thyroid_joins_both_files_and_keeps_signs_as_texts() -> None:
    line = b"0.73 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0.0006 0.015 0.12 0.082 0.146 3  \n"
    frame = uci.thyroid([line, line.replace(b" 3  ", b" 1  ")])
    assert frame["target"].tolist() == [3, 1]
    assert frame.iloc[0][["age", "sex", "on_thyroxine", "I131_treatment", "TSH", "FTI"]].tolist() == [
        0.73, "0", "1", "1", 0.0006, 0.146,
    ]  # fmt: skip


def test_shopper_keeps_code_numbers_as_texts() -> None:
    raw = (
        b"Administrative,Administrative_Duration,Informational,Informational_Duration,ProductRelated,"
        b"ProductRelated_Duration,BounceRates,ExitRates,PageValues,SpecialDay,Month,OperatingSystems,Browser,Region,"
        b"TrafficType,VisitorType,Weekend,Revenue\n"
        b"0,0,0,0,1,2.666666667,0.05,0.14,0,0.4,Feb,3,2,2,4,Returning_Visitor,FALSE,FALSE\n"
        b"3,142.5,0,0,48,1052.255952,0.004347826,0.013043478,0,0,Nov,2,2,1,1,New_Visitor,TRUE,TRUE\n"
    )
    frame = uci.shopper([raw])
    assert frame["target"].tolist() == [0, 1]
    assert frame["Weekend"].tolist() == ["FALSE", "TRUE"]
    assert frame.iloc[1][["OperatingSystems", "TrafficType", "ProductRelated", "ExitRates"]].tolist() == [
        "2", "1", 48, 0.013043478,
    ]  # fmt: skip


def test_digit_names_pixels_row_by_row() -> None:
    frame = uci.digit([b",".join(b"%d" % (k % 17) for k in range(64)) + b",7\n"] * 2)
    assert frame.shape == (2, 65)
    assert frame["pixel_1_0"].tolist() == [8, 8]
    assert frame["target"].tolist() == [7, 7]


def test_germancredit_turns_codes_into_labels_and_counts_bad_risks() -> None:
    frame = uci.germancredit([GERMAN_HEADER + b"1 18 4 2 1049 1 2 4 2 1 4 2 21 3 1 1 3 2 1 2 1\n"])
    row = frame.iloc[0]
    assert row["target"] == 0
    assert row[["duration", "amount", "age"]].tolist() == [18, 1049, 21]
    assert row[["credit_history", "purpose", "installment_rate", "people_liable", "foreign_worker"]].tolist() == [
        "all credits at this bank paid back duly", "car (used)", "< 20", "0 to 2", "no",
    ]  # fmt: skip


def test_bank_keeps_unknown_and_points_in_names() -> None:
    frame = uci.bank([b'"age";"default";"emp.var.rate";"y"\n57;"unknown";1.1;"yes"\n'])
    assert frame.to_dict("records") == [{"age": 57, "default": "unknown", "emp.var.rate": 1.1, "target": 1}]


def test_spam_has_whole_lengths_and_broken_shares() -> None:
    frame = uci.spam([b",".join([b"0"] * 53 + [b"0.778", b"3.756", b"61", b"278", b"1"]) + b"\r\n"])
    assert frame["capital_run_length_longest"].dtype.kind == "i"
    assert frame.iloc[0][["char_freq_hash", "capital_run_length_average", "target"]].tolist() == [0.778, 3.756, 1]


@pytest.mark.slow
@pytest.mark.skipif(not data.SHARED.is_dir(), reason="the data sets are not on this machine")
@pytest.mark.parametrize("name", sorted(data.SOURCES))
def test_the_data_sets_here_are_those_of_the_digests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPBAYES_DATA", raising=False)
    assert data.load(name).columns[-1] == "target"
