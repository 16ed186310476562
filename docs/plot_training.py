#!/usr/bin/env python3
"""Draws the log of a training run as an SVG: loss and, where it has that, accuracy by epoch, on
training and test data.

usage: docs/plot_training.py LOG.json OUT.svg [TITLE]

LOG.json is what the examples write into their output folder: a list with one object an epoch.
docs/training.svg is drawn from
  catena-run -n 2 --cpu build/bin/train_mnist_distributed --epoch 20 --out result
"""
import json
import pathlib
import sys
import xml.sax.saxutils

HEIGHT = 300
PANEL_WIDTH, PANEL_HEIGHT = 280, 190
PANEL_STEP = 380  # from one panel to the next
TRAIN, TEST, GREY = "#2563eb", "#ea580c", "#8a8f98"


class Panel:
    """One pair of axes at (left, top), which maps epochs and values to points of the drawing."""

    def __init__(self, title, left, top, epochs, ticks, form):
        self.title, self.left, self.top = title, left, top
        self.epochs, self.ticks, self.form = epochs, ticks, form

    def x(self, epoch):
        span = max(self.epochs - 1, 1)
        return self.left + PANEL_WIDTH * (epoch - 1) / span

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        return self.top + PANEL_HEIGHT * (high - value) / (high - low)

    def axes(self):
        yield text(self.left, self.top - 14, self.title, anchor="start", weight="600")
        for tick in self.ticks:
            yield line(self.left, self.y(tick), self.left + PANEL_WIDTH, self.y(tick))
            yield text(self.left - 8, self.y(tick) + 4, self.form.format(tick), anchor="end")
        for epoch in sorted({1, *range(5, self.epochs + 1, 5), self.epochs}):
            yield text(self.x(epoch), self.top + PANEL_HEIGHT + 18, str(epoch))

    def curve(self, values, color):
        points = " ".join(f"{self.x(i + 1):.1f},{self.y(v):.1f}" for i, v in enumerate(values))
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
        for index, value in enumerate(values):
            yield f'<circle cx="{self.x(index + 1):.1f}" cy="{self.y(value):.1f}" r="2.5" fill="{color}"/>'


def text(x, y, content, anchor="middle", weight="400", color=GREY):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{color}">{xml.sax.saxutils.escape(content)}</text>')


def line(x1, y1, x2, y2):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GREY}" stroke-opacity="0.3"/>'


def ticks_around(values):
    """Four to seven round numbers from below the smallest value to above the largest."""
    low, high = min(values), max(values)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if (high - low) / s <= 5 or s == 10)
    first, last = int(low / step), int(high / step) + 1
    return [round(step * k, 4) for k in range(first, last + 1)]


def legend(width):
    for x, name, color in ((width - 200, "training", TRAIN), (width - 110, "test", TEST)):
        yield f'<rect x="{x}" y="22" width="18" height="3" fill="{color}"/>'
        yield text(x + 24, 28, name, anchor="start", color=color)


def drawing(log, title):
    def column(name):
        return [row[name] for row in log]

    quantities = ["loss"] + ["accuracy"] * ("train_accuracy" in log[0])
    width = PANEL_STEP * len(quantities)
    parts = [text(40, 28, title, anchor="start", weight="600"), *legend(width)]
    for left, quantity in zip(range(60, width, PANEL_STEP), quantities):
        train, test = column(f"train_{quantity}"), column(f"test_{quantity}")
        panel = Panel(f"{quantity} by epoch", left, 76, len(log), ticks_around(train + test), "{:.2f}")
        parts += [*panel.axes(), *panel.curve(train, TRAIN), *panel.curve(test, TEST)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
            f'font-family="sans-serif" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n")


def main(arguments):
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    source, out = pathlib.Path(arguments[0]), pathlib.Path(arguments[1])
    try:
        log = json.loads(source.read_text())
        if not isinstance(log, list) or not log:
            raise ValueError("expected a list with one object an epoch")
        svg = drawing(log, arguments[2] if len(arguments) == 3 else source.name)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot_training: {source} is not a log with losses of training and test: {error!r}")
    out.write_text(svg)
    last = next(name for name in ("test_accuracy", "test_loss") if name in log[-1])
    print(f"{out}: {len(log)} epochs, {last.replace('_', ' ')} {log[-1][last]:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
