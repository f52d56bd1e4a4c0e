"""Charts: three formats, no network."""

import pytest

from dpbayes.errors import InvalidArgument
from dpbayes.report.charts import Bar, save_bars

ROWS = [Bar(label="a <b>", value=0.1, upper=0.3), Bar(label="b", value=2.0, highlighted=True)]


def test_png_svg_and_html_are_written(tmp_path):
    for name, magic in (("c.png", b"\x89PNG"), ("c.svg", b"<?xml"), ("c.html", b"<!doctype html>")):
        save_bars(tmp_path / name, ROWS, title="t & u", axis="error", note="<script>")
        assert (tmp_path / name).read_bytes().startswith(magic)
    page = (tmp_path / "c.html").read_text()
    assert "<script>" not in page
    assert "t &amp; u" in page


def test_the_same_chart_has_the_same_bytes(tmp_path):
    for name in ("one.svg", "two.svg"):
        save_bars(tmp_path / name, ROWS, title="t", axis="x")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(InvalidArgument, match=r"\.png, \.svg, \.html"):
        save_bars(tmp_path / "c.pdf", ROWS, title="t", axis="x")
