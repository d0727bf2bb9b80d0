#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The same work on each backend, side by side.

  tools/bazel run -c opt //bench:pollers                                a table, in six minutes
  tools/bazel run -c opt //bench:pollers -- --poller=epoll,io_uring     these only
  tools/bazel run -c opt //bench:pollers -- --only='64 B, 64$'          some of the work
  tools/bazel run -c opt //bench:pollers -- --quick                     a look
  tools/bazel run -c opt //bench:pollers -- --json                      each run, to reckon with

A server on one processor, its clients on another. A figure is the median of several
passes; in each all backends do all the work, in turn.
"""

import argparse
import collections
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import measure
from measure import median, number, say

WAKE = measure.Work("wake by another thread", (), 0)
WORK = [work for work in measure.NETWORK if work != measure.IDLE] + [WAKE, measure.IDLE]

# What is told of it: the key in pollers_load's line, and a heading.
FIGURES = [
    ("cpu_us", "server CPU, us a request", 2),
    ("calls", "system calls a request", 3),
    ("rate", "requests a second", 0),
    ("p50_us", "latency, median, us", 1),
    ("p99_us", "latency, 99 of 100, us", 1),
    ("wake_ns", "latency, median, ns", 0),
    ("bytes", "memory, bytes a connection", 0),
]


def run(options, poller, work, machine):
    """The figures of one run, and how the server was built."""
    server = [os.path.abspath(options.server), "--poller=" + poller]
    if work != WAKE:
        return measure.serve(server, options.load, work, options.seconds, machine)
    wakes = max(10, int(options.seconds * 2000))
    command = server + ["--wakes=%d" % wakes, "--other-cpu=%d" % machine.client_cpu]
    return measure.figures_of(command, machine.server_cpu), None


def as_table(runs, pollers):
    """`runs`: {(work's name, poller): [figures of each pass]}."""
    lines = []
    width = max(len(work.name) for work in WORK) + 4
    for key, heading, digits in FIGURES:
        rows = []
        for work in WORK:
            cells, first = [], None
            for poller in pollers:
                values = [r[key] for r in runs.get((work.name, poller), []) if r.get(key, -1) >= 0]
                if not values:
                    cells.append("-")
                    continue
                value = median(values)
                first = value if first is None else first
                ratio = "" if not first or poller == pollers[0] else " (%.2fx)" % (value / first)
                cells.append(number(value, digits) + ratio)
            if any(cell != "-" for cell in cells):
                rows.append("  " + work.name.ljust(width - 2) + "".join(cell.rjust(22) for cell in cells))
        if rows:
            lines.append(heading.ljust(width) + "".join(poller.rjust(22) for poller in pollers))
            lines += rows + [""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="pollers", description=__doc__.split("\n\n")[0])
    parser.add_argument("server", help=argparse.SUPPRESS)
    parser.add_argument("load", help=argparse.SUPPRESS)
    parser.add_argument("--poller", metavar="NAMES", default="epoll,io_uring,poll", help="with commas in between")
    parser.add_argument("--only", metavar="REGEX", default="", help="work whose name matches, as `64 B`")
    parser.add_argument("--passes", type=int, metavar="N", help="of which the median counts (5)")
    parser.add_argument("--seconds", type=float, metavar="S", help="that each run is measured (1)")
    parser.add_argument("--quick", action="store_true", help="one short pass: a look, not a measurement")
    parser.add_argument("--json", action="store_true", help="the figures of each run")
    options = parser.parse_args()
    options.passes = options.passes or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.3 if options.quick else 1)
    pollers = [name for name in options.poller.split(",") if name]
    works = [work for work in WORK if re.search(options.only, work.name)]
    if not pollers or not works:
        what = "--only=" + options.only if pollers else "--poller=" + options.poller
        say("pollers: %s names nothing; there is: %s" % (what, "; ".join(work.name for work in WORK)))
        return 2

    machine = measure.Machine()
    works = machine.possible(works)

    began = time.monotonic()
    runs, builds, broken = collections.OrderedDict(), set(), {}
    for number_of_pass in range(options.passes):
        for work in works:
            say("[%d/%d] %4.0f s  %s" % (number_of_pass + 1, options.passes, time.monotonic() - began, work.name))
            turn = number_of_pass % len(pollers)
            for poller in pollers[turn:] + pollers[:turn]:
                if poller in broken:
                    continue
                try:
                    figures, build = run(options, poller, work, machine)
                except (OSError, RuntimeError) as error:
                    say("pollers: %s, %s: %s" % (poller, work.name, error))
                    broken[poller] = "%s, %s: %s" % (poller, work.name, error)
                    continue
                builds.add(build)
                runs.setdefault((work.name, poller), []).append(figures)
    say("      %4.0f s  done" % (time.monotonic() - began))
    shown = [poller for poller in pollers if any(name == poller for _, name in runs)]
    if builds - {"opt", None}:
        machine.remarks.append("BUILT WITHOUT -c opt: THESE FIGURES MEAN NOTHING. tools/bazel run -c opt //bench:pollers")
    machine.remarks += broken.values()

    if options.json:
        each = [{"work": work, "poller": poller, "runs": all_of} for (work, poller), all_of in runs.items()]
        print(json.dumps({"remarks": machine.remarks, "results": each}, indent=1))
    else:
        if shown:
            print(as_table(runs, shown))
        print("the median of %d pass%s of %g s" % (options.passes, "es" if options.passes > 1 else "", options.seconds))
        for remark in machine.remarks:
            print(remark)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
