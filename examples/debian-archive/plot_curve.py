#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the learning curve in a file that graft-train --json has written, as a picture, with gnuplot."""
import argparse
import json
import math
import os
import subprocess
import sys

ACCURACIES = (("train_accuracy", "training", "linecolor '#999999'"),
              ("test_accuracy", "test", "linecolor '#d55e00'"),
              ("val_accuracy", "validation", "linecolor '#0072b2' dashtype (8,6)"))

SETTINGS = """\
set terminal pngcairo noenhanced size 1000,760 font 'DejaVu Sans,12' background '#ffffff'
set output {output}
set multiplot title {title} font ',15' offset 0,-0.6
set border 3 linewidth 0.8 linecolor '#444444'
set tics nomirror out scale 0.6
set grid ytics linetype 1 linewidth 0.6 linecolor '#dddddd'
set xrange [0:{last}]
set lmargin at screen 0.085
set rmargin at screen 0.84
set key at screen 0.85,screen 0.9 left top Left reverse samplen 2 spacing 1.4 title 'accuracy' left
"""
UPPER = """\
set tmargin at screen 0.895
set bmargin at screen 0.67
set format x ''
set ylabel 'loss' offset -0.5
set yrange [0:*]
set ytics {step}
set key off
plot $loss using 1:2 with lines linewidth 2 linecolor '#333333'
"""
LOWER = """\
set tmargin at screen 0.63
set bmargin at screen 0.085
set format x '%g'
set format y '%.0f %%'
set ylabel 'accuracy' offset -0.5
set xlabel 'epoch'
set yrange [0:{top}]
set ytics 10
set key on
set arrow 1 from 0,{accuracy} to {epoch},{accuracy} nohead dashtype 3 linecolor '#d55e00'
set label 1 {text} at graph 1.02,first {accuracy} left textcolor '#d55e00' font ',13'
plot {plots}, $chosen using 1:2 with points pointtype 7 pointsize 1.3 linecolor '#d55e00' notitle
"""


def quote(text):
    """Quote a text for gnuplot."""
    return "'" + str(text).replace("'", "''") + "'"


def data_block(name, rows):
    return f"${name} << END\n" + "".join(f"{x} {y}\n" for x, y in rows) + "END\n"


def tic_step(top):
    """The distance of tics: 1, 2 or 5 times a power of ten, so that an axis from 0 to top has two to five tics."""
    power = 10 ** math.floor(math.log10(top)) if top > 0 else 1
    return next(step * power for step in (0.2, 0.5, 1, 2) if top <= 5 * step * power)


def make_script(result, title, output):
    history = [row for row in result["history"] if row["loss"] is not None]
    points = {key: [(row["epoch"], 100 * row[key]) for row in history if row[key] is not None]
              for key, *_ in ACCURACIES}
    if result["test_accuracy"] is None or not points["test_accuracy"]:
        raise ValueError("no epoch has a test accuracy, so there is no curve to draw")
    loss = [(row["epoch"], row["loss"]) for row in history]
    final = 100 * result["test_accuracy"]
    highest = max(accuracy for rows in points.values() for _, accuracy in rows)
    plots = [f"${key} using 1:2 with lines linewidth 2 {look} title {quote(label)}"
             for key, label, look in ACCURACIES if points[key]]

    script = data_block("loss", loss) + data_block("chosen", [(result["best_epoch"], final)])
    script += "".join(data_block(key, rows) for key, rows in points.items() if rows)
    script += SETTINGS.format(output=quote(output), title=quote(title), last=history[-1]["epoch"])
    script += UPPER.format(step=tic_step(max(value for _, value in loss)))
    return script + LOWER.format(top=min(100, 10 * math.ceil((highest + 1) / 10)), accuracy=final,
                                 epoch=result["best_epoch"], text=quote(f"{final:.1f} % test"), plots=", ".join(plots))


def draw(json_path, png_path, title):
    with open(json_path, encoding="utf-8") as file:
        result = json.load(file)
    partial = png_path + ".partial"
    subprocess.run(["gnuplot", "-"], input=make_script(result, title, partial), text=True, check=True)
    os.replace(partial, png_path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", help="written by graft-train --json")
    parser.add_argument("picture", help="PNG file to write")
    parser.add_argument("--title", default="Learning curve")
    options = parser.parse_args()
    try:
        draw(options.json, options.picture, options.title)
    except KeyError as error:
        sys.exit(f"plot_curve.py: {options.json}: there is no {error} in it")
    except (OSError, ValueError, TypeError, subprocess.CalledProcessError) as error:
        sys.exit(f"plot_curve.py: {options.json}: {error}")


if __name__ == "__main__":
    main()
