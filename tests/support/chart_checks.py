"""Whether a plot is one: its rows, its menus, its table, and Vega-Lite's own opinion of it."""

import json

from loginfer.report.values import Chart, DataFile, Page


def parts_of(made):
    """Return the page that a maker made, and the data files by path."""
    parts = list(made)
    (page,) = [part for part in parts if isinstance(part, Page)]
    return page, {part.path: part.value for part in parts if isinstance(part, DataFile)}


def rows_of(chart):
    """Return the rows of a plot, or those of a data file, as dictionaries."""
    data = chart.rows.as_dict() if isinstance(chart, Chart) else chart
    return [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]


def check_chart(chart, data=None):
    """Check a plot with its rows, or with those that a data file brings; return its picture as SVG."""
    import altair
    import vl_convert

    rows = rows_of(chart if data is None else data)
    fields = chart.rows.fields
    assert set(chart.columns) <= set(fields)
    assert data is None or tuple(data["fields"]) == fields
    for choice in chart.choices:
        known = {str(row[choice.field]) for row in rows}
        assert choice.options
        if data is None:
            assert {value for value, _ in choice.options} == known, choice.field
        rows = [row for row in rows if str(row[choice.field]) == choice.options[0][0]]
    assert rows
    whole = {**chart.spec, "data": {"values": rows}}
    json.dumps(whole, allow_nan=False)
    altair.Chart.from_dict(whole)
    sized = {**whole, "width": 400} if whole.get("width") == "container" else whole
    return vl_convert.vegalite_to_svg(sized)
