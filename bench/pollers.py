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
import resource
import subprocess
import sys
import time

SIZES = ((64, "64 B"), (16384, "16 KiB"))
CONNECTIONS = (1, 64, 1000, 10000)

# What is done: a name, and the arguments of pollers_load; "SECONDS" is filled in.
Work = collections.namedtuple("Work", "name arguments connections")
WORK = [Work("accept, request, reset", ("accept", "64", "SECONDS"), 64)]
for size, text in SIZES:
    for count in CONNECTIONS:
        WORK.append(
            Work("echo %s, %s" % (text, format(count, ",")), ("echo", str(count), str(size), "SECONDS"), count)
        )
WORK.append(Work("wake by another thread", ("wake", "COUNT"), 0))
WORK.append(Work("idle connections, 10,000", ("idle", "10000"), 10000))

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


def say(text):
    print(text, file=sys.stderr, flush=True)


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def syscall_event():
    """The number of the kernel's event "a system call begins", or None and why.

    It lies in a file system that need not be mounted; a mount namespace of one's own
    leaves no trace.
    """
    path = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"
    read = 'test -e %s || mount -t tracefs none /sys/kernel/tracing; cat %s' % (path, path)
    for command in (["cat", path], ["unshare", "--mount", "sh", "-c", read]):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return int(done.stdout), None
            reason = done.stderr.strip()
        except (OSError, ValueError) as error:
            reason = str(error)
    return None, reason.splitlines()[-1] if reason else "no reason given"


class Server:
    """The server on a backend, for one piece of work."""

    def __init__(self, program, poller, cpus, event):
        self.process = subprocess.Popen(
            [
                os.path.abspath(program),
                "--poller=" + poller,
                "--cpu=%d" % cpus[0],
                "--other-cpu=%d" % cpus[1],
                "--syscall-event=%d" % (-1 if event is None else event),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        words = self.process.stdout.readline().split()
        if len(words) != 3:
            error = self.process.communicate()[1].strip()
            raise RuntimeError(error or "the server ended with %d" % self.process.returncode)
        self.ports, self.build = words[:2], words[2]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def parse(line):
    words = line.split()
    return {key: float(value) for key, value in zip(words[::2], words[1::2])}


def run(options, poller, work, cpus, event):
    """The figures of one run, and how the server was built."""
    fill_in = {"SECONDS": str(options.seconds), "COUNT": str(max(10, int(options.seconds * 2000)))}
    with Server(options.server, poller, cpus, event) as server:
        done = subprocess.run(
            [os.path.abspath(options.load), *server.ports, str(cpus[1])]
            + [fill_in.get(argument, argument) for argument in work.arguments],
            capture_output=True,
            text=True,
            timeout=120 + 10 * options.seconds,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or "the clients ended with %d" % done.returncode)
        return parse(done.stdout), server.build


def number(value, digits):
    return format(value, ",.%df" % digits)


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

    remarks = []
    available = sorted(os.sched_getaffinity(0))
    cpus = (available[0], available[-1])
    if cpus[0] == cpus[1]:
        remarks.append("server and clients share the only processor: the rates and latencies mean nothing")
    event, why_not = syscall_event()
    if event is None:
        remarks.append("system calls are not counted: %s (it takes root, or CAP_PERFMON)" % why_not)
    load_before = os.getloadavg()[0]
    if load_before > 0.5 * len(available):
        remarks.append("the machine was busy before this began (load %.1f): figures are too high" % load_before)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for work in works:
        if work.connections + 100 > hard != resource.RLIM_INFINITY:
            remarks.append("not run: %s: no more than %d descriptors (ulimit -Hn)" % (work.name, hard))
    works = [work for work in works if not work.connections + 100 > hard != resource.RLIM_INFINITY]

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
                    figures, build = run(options, poller, work, cpus, event)
                except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                    say("pollers: %s, %s: %s" % (poller, work.name, error))
                    broken[poller] = "%s, %s: %s" % (poller, work.name, error)
                    continue
                builds.add(build)
                runs.setdefault((work.name, poller), []).append(figures)
    say("      %4.0f s  done" % (time.monotonic() - began))
    shown = [poller for poller in pollers if any(name == poller for _, name in runs)]
    if builds - {"opt"}:
        remarks.append("BUILT WITHOUT -c opt: THESE FIGURES MEAN NOTHING. tools/bazel run -c opt //bench:pollers")
    remarks += broken.values()

    if options.json:
        each = [{"work": work, "poller": poller, "runs": all_of} for (work, poller), all_of in runs.items()]
        print(json.dumps({"remarks": remarks, "results": each}, indent=1))
    else:
        if shown:
            print(as_table(runs, shown))
        print("the median of %d pass%s of %g s" % (options.passes, "es" if options.passes > 1 else "", options.seconds))
        for remark in remarks:
            print(remark)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
