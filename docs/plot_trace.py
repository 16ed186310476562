#!/usr/bin/env python3
"""Draws a stretch of a trace as an SVG picture.

Usage: plot_trace.py TRACE.json STEP [LEVELS] > picture.svg
STEP is the number of a step that catena-run marked, LEVELS how deep ranges inside of ranges are
drawn (all of them). Only the standard library is needed.
"""
import html
import json
import sys

COLORS = {"function": "#7fb3d5", "backward": "#5d8aa8", "communication": "#e59866",
          "update": "#82c99b", "data": "#f4d35e", "wait": "#c39bd3", "range": "#dfe3e6",
          "step": "#bfc9ca", "pipeline": "#76a5af", "kernel": "#5d8aa8", "collective": "#e59866",
          "copy": "#c9b1d9"}
LEFT, WIDTH, ROW, GAP = 70, 900, 18, 12


def rows_of(events):
    """Gives each event of a thread the depth of its nesting."""
    open_ends = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while open_ends and open_ends[-1] <= event["ts"]:
            open_ends.pop()
        yield len(open_ends), event
        open_ends.append(event["ts"] + event["dur"])


def box(x, y, width, event):
    label = html.escape(event["name"])
    shown = label if 6.2 * len(event["name"]) < width else ""
    return (f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0.6):.1f}" height="{ROW - 2}" '
            f'fill="{COLORS.get(event["cat"], "#cccccc")}"><title>{label}</title></rect>'
            + (f'<text x="{x + 3:.1f}" y="{y + 12}">{shown}</text>' if shown else ""))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    levels = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    steps = [e for e in events if e["name"] == f"step {sys.argv[2]}"]
    begin = min(e["ts"] for e in steps)
    end = max(e["ts"] + e["dur"] for e in steps)
    scale = WIDTH / (end - begin)
    body, y = [], 30
    for rank in sorted({e["pid"] for e in events}):
        for thread in sorted({e["tid"] for e in events if e["pid"] == rank}):
            inside = [e for e in events if e["pid"] == rank and e["tid"] == thread
                      and e["ts"] + e["dur"] > begin and e["ts"] < end]
            if not inside:
                continue
            depth = 0
            name = f"rank {rank}" if thread == 0 else ""
            body.append(f'<text x="8" y="{y + 12}">{name}</text>')
            for level, event in rows_of(inside):
                if level >= levels:
                    continue
                left = max(event["ts"], begin)
                width = (min(event["ts"] + event["dur"], end) - left) * scale
                body.append(box(LEFT + (left - begin) * scale, y + level * ROW, width, event))
                depth = max(depth, level + 1)
            y += depth * ROW + (2 if thread == 0 else GAP)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" height="{y}" '
          f'viewBox="0 0 {LEFT + WIDTH + 10} {y}" font-family="sans-serif" font-size="11">')
    print('<rect width="100%" height="100%" fill="white"/>')
    print(f'<text x="{LEFT}" y="18">step {sys.argv[2]}: {end - begin:.0f} us</text>')
    print("\n".join(body))
    print("</svg>")


main()
