#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""compare.py's figures as one HTML page: bars for each, and all of them in a table."""

import html

from measure import median, number

# Ours, the lower bound, everybody else's.
COLOURS = {"weft": "#0b6e4f", "raw": "#9aa0a6"}
OTHERS = "#3d6fb4"

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1f23; margin: 2em auto; max-width: 76em; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2em 0 .4em; }
.about { color: #57606a; margin: 0; } .remark { color: #9a3412; margin: .2em 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(23em, 1fr)); gap: 1.2em 2em; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: .2em; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #1b1f23; }
table { border-collapse: collapse; font-size: 13px; } th, td { padding: .2em .6em; text-align: right; border-bottom: 1px solid #e4e7eb; }
th:first-child, td:first-child { text-align: left; } .scroll { overflow-x: auto; }
"""


def colour(peer):
    return COLOURS.get(peer.split()[0], OTHERS)


def bars(values, digits, unit):
    """An SVG of horizontal bars: medians, and a line from the least to the most of the passes."""
    label, width, height = 118, 230, 17
    most = max(max(each) for each in values.values()) or 1
    out = ['<svg viewBox="0 0 %d %d" role="img">' % (label + width + 78, height * len(values) + 4)]
    for i, (peer, passes) in enumerate(values.items()):
        y, value = i * height + 2, median(passes)
        low, high = (label + width * end / most for end in (min(passes), max(passes)))
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (label - 6, y + 12, html.escape(peer)))
        out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (label, y + 2, max(1, width * value / most), height - 5, colour(peer)))
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#1b1f23" stroke-width="1"/>' % (low, high, y + 8, y + 8))
        text = (number(value, digits) + " " + unit).strip()
        out.append('<text x="%.1f" y="%d">%s</text>' % (max(high, label + width * value / most) + 5, y + 12, text))
    return "\n".join(out + ["</svg>"])


def table(rows, peers):
    columns = [peer for peer in peers if any(peer in row[3] for row in rows)]
    out = ["<table>", "<tr><th></th>" + "".join("<th>%s</th>" % html.escape(c) for c in columns) + "</tr>"]
    for name, unit, digits, values, _ in rows:
        cells = [number(median(values[c]), digits) if c in values else "" for c in columns]
        title = html.escape(name + (", " + unit if unit else ""))
        out.append("<tr><td>%s</td>" % title + "".join("<td>%s</td>" % cell for cell in cells) + "</tr>")
    return "\n".join(out + ["</table>"])


def page(rows, peers, about, remarks):
    """The page. `rows` as compare.rows_of() makes them; `about`: what the figures were taken on."""
    out = ["<!DOCTYPE html>", '<html lang="en"><meta charset="utf-8">', "<title>weft and its peers</title>"]
    out += ["<style>%s</style>" % STYLE, "<h1>weft and its peers</h1>"]
    out += ['<p class="about">%s: %s</p>' % (html.escape(k), html.escape(v)) for k, v in about.items()]
    out += ['<p class="remark">%s</p>' % html.escape(remark) for remark in remarks]
    out.append("<p>Bars are medians, with a line from the least to the most of the passes. Shorter is better, but for rates.</p>")
    group = None
    for name, unit, digits, values, is_rising in rows:
        heading = name.split(",")[0].split(":")[0]
        if heading != group:
            out += ["</div>"] if group else []
            out += ["<h2>%s</h2>" % html.escape(heading), '<div class="charts">']
            group = heading
        ordered = {peer: values[peer] for peer in peers if peer in values}
        caption = html.escape(name) + (" (more is better)" if is_rising else "")
        out.append("<figure><figcaption>%s</figcaption>%s</figure>" % (caption, bars(ordered, digits, unit)))
    out += ["</div>"] if group else []
    out += ["<h2>All figures</h2>", '<div class="scroll">%s</div>' % table(rows, peers), "</html>"]
    return "\n".join(out) + "\n"
