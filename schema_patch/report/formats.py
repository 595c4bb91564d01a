"""The formats that a report can be had in."""

from __future__ import annotations

from schema_patch.model import Report

FORMATS = ("text", "json", "sarif", "html")


def render(report: Report, form: str, *, title: str = "schema-kit") -> str:
    """The report in a format for machines or browsers; nothing for text, which a terminal gets line by line."""
    if form == "json":
        from .text import json

        return json(report)
    if form == "sarif":
        from .sarif import sarif

        return sarif(report)
    if form == "html":
        from .html import html

        return html(report, title)
    return ""
