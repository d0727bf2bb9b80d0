#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""weft and its peers, the same work side by side.

  tools/bazel run -c opt //bench:compare                        all of it, in about half an hour
  tools/bazel run -c opt //bench:compare -- --quick             a look: one short pass
  tools/bazel run -c opt //bench:compare -- --only='timer'      the work whose name matches
  tools/bazel run -c opt //bench:compare -- --peers=weft,libuv  these only
  tools/bazel run -c opt //bench:compare -- --html=FILE         and charts, in one page

A figure is the median of several passes; in each all do all the work, in turn, each in a
process of its own, on one processor. Where the work has two sides (clients and a server,
two threads) they have a processor each. "raw" is the same work by hand, without a loop:
the lower bound.
"""

import argparse
import collections
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import charts
import measure
from measure import median, number, say

# What is done inside of a process. A name, the name for the peers' programs, how many
# operations, whether fewer will do where those are slow or a look is enough, whether one
# processor is all that it gets, and the figures: a key, what it is called, the unit, how many
# digits.
Local = collections.namedtuple("Local", "name work count scales pinned figures")
NS = (("ns", "", "ns", 1), ("ns_allocs", "allocations", "", 2))


def timers(count, text):
    return Local(
        "timers, " + text, "timers", count, False, True,
        tuple((key, key, "ns", 1) for key in ("insert", "cancel", "fire")),
    )  # fmt: skip


LOCAL = [
    Local("post, chain", "post_chain", 2_000_000, True, True, NS),
    Local("post, batches of 1,000", "post_batch", 2_000_000, True, True, NS),
    Local("switch, 2 tasks", "switch_2", 1_000_000, True, True, NS),
    Local("switch, 1,000 tasks", "switch_1000", 1_000_000, True, True, NS),
    Local("spawn and join", "spawn", 500_000, True, True, NS),
    timers(1_000, "1,000"),
    timers(100_000, "100,000"),
    timers(1_000_000, "1,000,000"),
    Local("timer lateness", "lateness", 500, False, True, (("p50_us", "p50", "us", 1), ("p99_us", "p99", "us", 1), ("early", "early", "", 0))),
    Local("posts from 1 thread", "posts_1", 1_000_000, True, False, (("ns", "", "ns", 1),)),
    Local("posts from 4 threads", "posts_4", 1_000_000, True, False, (("ns", "", "ns", 1),)),
    Local("round trip between threads", "ping_pong", 20_000, True, False, (("ns", "", "ns", 0),)),
    Local("start and stop of a loop", "start_stop", 5_000, True, True, (("ns", "", "ns", 0),)),
    Local("a sleeping task", "sleeping_tasks", 100_000, False, True, (("bytes", "", "bytes", 0),)),
]

NETWORK_FIGURES = (
    ("cpu_us", "server CPU", "us", 2),
    ("calls", "system calls", "", 3),
    ("rate", "requests a second", "", 0),
    ("p50_us", "p50", "us", 1),
    ("p99_us", "p99", "us", 1),
    ("bytes", "memory", "bytes", 0),
)
# More is better.
RISING = {"rate"}


class Peer:
    """Who does the work: by which program, and by which servers."""

    def __init__(self, name, local=None, server=None, package=None, share=1):
        self.name, self.local, self.server, self.package = name, local, server, package
        self.share = share  # Of the operations, where those may be fewer.
        self.works = set()


def peers_of(programs):
    """All of them, with what Bazel has built. Who is not there has a package."""
    by_name = {os.path.basename(path): os.path.abspath(path) for path in programs}
    script = by_name["asyncio_peer.py"]

    def built(name, *arguments):
        return [by_name[name], *arguments] if name in by_name else None

    def python(loop):
        """A Python that has it: the one that runs this, or the system's."""
        for interpreter in (sys.executable, "/usr/bin/python3"):
            if os.path.exists(interpreter):
                done = subprocess.run([interpreter, script, loop, "--list"], capture_output=True)
                if done.returncode == 0:
                    return [interpreter, script, loop]
        return None

    found = [
        Peer("weft", built("weft_work"), built("echo_server", "--poller=epoll")),
        Peer("weft sockets", None, built("echo_server", "--poller=epoll", "--by=sockets")),
        Peer("weft callbacks", None, built("echo_server", "--poller=epoll", "--by=callbacks")),
        Peer("weft io_uring", None, built("echo_server", "--poller=io_uring")),
        Peer("raw", built("raw_work"), built("raw_epoll_echo")),
        Peer("raw io_uring", None, built("raw_uring_echo"), "liburing-dev"),
        Peer("libuv", built("libuv_work"), built("libuv_echo"), "libuv1-dev"),
        Peer("libev", built("libev_work"), built("libev_echo"), "libev-dev"),
        Peer("libevent", built("libevent_work"), built("libevent_echo"), "libevent-dev"),
        Peer("Asio", built("asio_work"), built("asio_echo"), "libboost1.81-dev"),
        Peer("Asio coroutines", None, built("asio_echo", "--coroutines"), "libboost1.81-dev"),
    ]
    for loop in ("asyncio", "uvloop"):
        command = python(loop)
        package = "python3" if loop == "asyncio" else "python3-uvloop"
        found.append(Peer(loop, command, command and command + ["--echo=protocols"], package, 0.05))
        found.append(Peer(loop + " streams", None, command and command + ["--echo=streams"], package))
    for peer in found:
        if peer.local:
            listed = subprocess.run(peer.local + ["--list"], capture_output=True, text=True)
            peer.works = set(listed.stdout.split())
    return found


def is_ours(name):
    return name.split()[0] == "weft"


def is_raw(name):
    return name.split()[0] == "raw"


def operations(work, peer, options):
    """How many a peer does in one run. What the work's name says stays as it is."""
    return max(1000, int(work.count * options.share * peer.share)) if work.scales else work.count


def run(peer, work, options, machine):
    """The figures of one run, or None if it is not this peer's."""
    if isinstance(work, Local):
        if not peer.local or work.work not in peer.works:
            return None
        figures = measure.figures_of(peer.local + [work.work, str(operations(work, peer, options))], machine.server_cpu if work.pinned else None)
        if not figures.pop("opt", 1):
            raise RuntimeError("built without -c opt")
        return figures
    if not peer.server:
        return None
    figures, build = measure.serve(peer.server, options.load, work, options.seconds, machine)
    if build != "opt":
        raise RuntimeError("built without -c opt")
    return figures


def rows_of(works, runs):
    """A row for each figure: (name, unit, digits, {peer: values of the passes}, is_rising)."""
    rows = []
    for work in works:
        of_work = runs.get(work.name, {})
        for key, heading, unit, digits in work.figures if isinstance(work, Local) else NETWORK_FIGURES:
            values = {
                peer: [one[key] for one in passes if one.get(key, -1) >= 0] for peer, passes in of_work.items()
            }
            values = {peer: each for peer, each in values.items() if each}
            if values:
                name = work.name + (": " + heading if heading else "")
                rows.append((name, unit, digits, values, key in RISING))
    return rows


def best_of(values, is_rising, among):
    """The peer with the best median, or None."""
    candidates = [peer for peer in values if among(peer)]
    if not candidates:
        return None
    return (max if is_rising else min)(candidates, key=lambda peer: median(values[peer]))


def ratio(values, ours, other, of=median):
    below = of(values[other])
    return of(values[ours]) / below if below else None


def shown(value):
    return "-" if value is None else "%.2fx" % value


def as_text(rows, peers):
    """For each figure: everybody's median, and ours as a multiple of the best peer's and of raw's."""
    columns = [peer for peer in peers if any(peer in row[3] for row in rows)]
    first = max([len(row[0] + row[1]) for row in rows] + [10]) + 3
    widths = [max(10, len(column) + 2) for column in columns]
    heads = ["of the best peer", "of raw"]
    lines = ["".ljust(first) + "".join(c.rjust(w) for c, w in zip(columns, widths)) + heads[0].rjust(30) + heads[1].rjust(9)]
    for name, unit, digits, values, is_rising in rows:
        cells = [number(median(values[c]), digits) if c in values else "-" for c in columns]
        line = (name + (", " + unit if unit else "")).ljust(first)
        line += "".join(cell.rjust(width) for cell, width in zip(cells, widths))
        peer = best_of(values, is_rising, lambda p: not is_ours(p) and not is_raw(p))
        raw = best_of(values, is_rising, is_raw)
        if "weft" in values:
            if peer:
                line += ("%s (best %s) %s" % (shown(ratio(values, "weft", peer)), shown(ratio(values, "weft", peer, min)), peer)).rjust(30)
            else:
                line += "".rjust(30)
            if raw:
                line += shown(ratio(values, "weft", raw)).rjust(9)
        lines.append(line.rstrip())
    return "\n".join(lines)


def commit():
    folder = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not folder:
        return "unknown"
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def spread(runs):
    """How far the passes lie apart: the median over all of (largest - smallest) / median."""
    spreads = []
    for of_work in runs.values():
        for passes in of_work.values():
            for key in passes[0]:
                values = [one[key] for one in passes if key in one]
                if len(values) > 1 and key in ("ns", "cpu_us", "insert", "cancel", "fire") and median(values) > 0:
                    spreads.append((max(values) - min(values)) / median(values))
    return median(spreads) if spreads else 0


def parse_options():
    parser = argparse.ArgumentParser(prog="compare", description=__doc__.split("\n\n")[0])
    parser.add_argument("load", help=argparse.SUPPRESS)
    parser.add_argument("programs", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="REGEX", default="", help="work whose name matches, as `timer|64 B, 64$`")
    parser.add_argument("--peers", metavar="NAMES", default="", help="with commas in between; all, if none is named")
    parser.add_argument("--passes", type=int, metavar="N", help="of which the median counts (5)")
    parser.add_argument("--seconds", type=float, metavar="S", help="that each run of a server is measured (1)")
    parser.add_argument("--quick", action="store_true", help="one short pass: a look, not a measurement")
    parser.add_argument("--html", metavar="FILE", help="where to write the charts")
    parser.add_argument("--json", metavar="FILE", help="where to write the figures of each run")
    options = parser.parse_args()
    options.passes = options.passes or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.3 if options.quick else 1)
    options.share = 0.05 if options.quick else 1
    return options


def main():
    options = parse_options()
    everybody = peers_of(options.programs)
    chosen = [name.strip() for name in options.peers.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in [peer.name for peer in everybody]]
    works = [work for work in LOCAL + measure.NETWORK if re.search(options.only, work.name)]
    if unknown or not works:
        what, there = ("--peers: there is no " + unknown[0], everybody) if unknown else ("--only matches nothing", LOCAL + measure.NETWORK)
        say("compare: %s; there is: %s" % (what, "; ".join(each.name for each in there)))
        return 2
    peers = [peer for peer in everybody if not chosen or peer.name in chosen]

    machine = measure.Machine()
    for peer in peers:
        if not peer.local and not peer.server:
            machine.remarks.append("not run: %s: it was not there to build against (apt-get install %s, then bazel sync --configure)" % (peer.name, peer.package))
    works = [w for w in works if isinstance(w, Local)] + machine.possible([w for w in works if not isinstance(w, Local)])

    began = time.monotonic()
    runs, broken = collections.OrderedDict(), {}
    for number_of_pass in range(options.passes):
        for work in works:
            say("[%d/%d] %4.0f s  %s" % (number_of_pass + 1, options.passes, time.monotonic() - began, work.name))
            turn = number_of_pass % len(peers)
            for peer in peers[turn:] + peers[:turn]:
                if (peer.name, work.name) in broken:
                    continue
                try:
                    figures = run(peer, work, options, machine)
                except (OSError, RuntimeError) as error:
                    broken[peer.name, work.name] = "failed: %s, %s: %s" % (peer.name, work.name, error)
                    say("compare: " + broken[peer.name, work.name])
                    continue
                if figures is not None:
                    runs.setdefault(work.name, {}).setdefault(peer.name, []).append(figures)
    say("      %4.0f s  done" % (time.monotonic() - began))

    machine.remarks += broken.values()
    rows = rows_of(works, runs)
    about = collections.OrderedDict(
        commit=commit(),
        date=datetime.date.today().isoformat(),
        machine="%d processors, %s" % (machine.processors, processor()),
        system="%s %s" % (platform.system(), platform.release()),
        passes="%d, in turn; figures are medians" % options.passes,
        noise="the passes of one figure lie %.0f %% apart, in the median" % (100 * spread(runs)),
        load="%.1f before it began" % machine.load,
    )
    names = [peer.name for peer in peers]
    print(as_text(rows, names))
    print()
    for key, value in about.items():
        print("%s: %s" % (key, value))
    for remark in machine.remarks:
        print(remark)
    where = os.environ.get("BUILD_WORKING_DIRECTORY", "")
    if options.html:
        with open(os.path.join(where, options.html), "w") as file:
            file.write(charts.page(rows, names, about, machine.remarks))
    if options.json:
        with open(os.path.join(where, options.json), "w") as file:
            json.dump({"about": about, "remarks": machine.remarks, "runs": runs}, file, indent=1)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
