"""A release as a page that people can read."""

from dpbayes.report.page import report_html as report_html
