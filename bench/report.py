#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runs all benchmarks that lie beside the code, and makes one table of them.

  tools/bazel run -c opt //bench:report                   a table
  tools/bazel run -c opt //bench:report -- --markdown     one to paste
  tools/bazel run -c opt //bench:report -- --quick        a look, in half a minute
  tools/bazel run -c opt //bench:report -- --only=timer   some of the programs

A figure is the median of several passes over all of them. Foreign load makes figures
worse, by a factor of two and more, and never better: compare those of one run, not of
two.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

# What an operation may cost and what it is meant to cost, in nanoseconds, with
# the reason for the rest. The first pattern that fits counts.
Goal = collections.namedtuple("Goal", "pattern must aim note")
GOALS = [
    Goal(r"loop/BM_PostChain$", 12, 6, "a round for each"),
    Goal(r"loop/BM_PostBatch$", 12, 6, ""),
    Goal(r"loop/BM_Switch/tasks:1000$", 15, 8, "one step of one task"),
    Goal(r"loop/BM_Switch/tasks:2$", 25, 10, "a round for every two"),
    Goal(r"loop/BM_SpawnAndJoin$", 40, 20, ""),
    Goal(r"loop/BM_CallAt/", 31, 15, ""),
    Goal(r"loop/BM_CancelTimer/timers:1000$", 15, 8, "in any order"),
    Goal(r"loop/BM_CancelTimer/timers:100000$", 23, 15, "in any order"),
    Goal(r"loop/BM_CancelTimer/timers:1000000$", 53, 30, "in any order"),
    Goal(r"loop/BM_FireTimer/timers:1000$", None, None, "a hundred in a round, and the round"),
    Goal(r"loop/BM_FireTimer/timers:100000$", 95, 40, "a hundred in a round, and the round"),
    Goal(r"loop/BM_FireTimer/timers:1000000$", 165, 80, "a hundred in a round, and the round"),
    Goal(r"loop/BM_CallLaterAndCancel$", None, None, "reads the clock: 20 to 40 ns"),
    Goal(r"loop/BM_PostFromThreads/producers:1/", 100, 67, ""),
    Goal(r"loop/BM_PostFromThreads/producers:4/", 62, 36, ""),
    Goal(r"loop/BM_RoundTrip/", None, None, "two wakes of the kernel's"),
    Goal(r"loop/BM_ToThread/", None, None, "two wakes of the kernel's"),
    Goal(r"loop/BM_CreateAndClose$", 1000, 300, ""),
    Goal(r"ByHand", None, None, "the lower bound: no poller, the same calls"),
]

# Those that say something only to who works on the matter, and take long.
# `--all` runs them too.
DETAILS = {
    "net/echo_benchmark": r"/tcp:0/|BM_StreamReadInto/|/connections:1000\b",
    "timer/timer_wheel_benchmark": r"BM_Fire/.*step:[1-9]",
}

# Counters that are figures of their own. The others go into the note.
ALLOCATIONS = "allocs"

KNOWN_KEYS = {
    "name", "run_name", "run_type", "repetitions", "repetition_index", "threads", "iterations",
    "real_time", "cpu_time", "time_unit", "items_per_second", "bytes_per_second", "label",
    "family_index", "per_family_instance_index", "aggregate_name", "aggregate_unit",
    "error_occurred", "error_message",
}  # fmt: skip
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def words(text):
    """PostFromThreads -> "post from threads"."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return re.sub(r"[A-Z](?![A-Z])", lambda m: m.group().lower(), apart)


def describe(name):
    """BM_PostFromThreads/producers:4/real_time -> "post from threads, producers 4"."""
    first, *rest = name.replace("<", "/").replace(">", "").split("/")
    texts = [words(re.sub(r"^BM_", "", first))]
    for part in rest:
        if re.match(r"(real|manual|process)_time$|repeats:|min_time:", part):
            continue
        key, _, value = part.rpartition(":")
        texts.append((key + " " if key else "") + (format(int(value), ",") if value.isdigit() else words(value)))
    return ", ".join(texts)


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


Row = collections.namedtuple("Row", "program name operation ns best allocs goal met note")


def row_of(program, name, runs):
    """The row of a benchmark, of the JSON objects of its runs."""
    folder = program.split("/")[0]
    goal = next((g for g in GOALS if re.search(g.pattern, folder + "/" + name)), None)
    failed = next((r["error_message"] for r in runs if r.get("error_occurred")), None)
    if failed is not None:
        return Row(program, name, describe(name), None, None, None, "", None, failed)
    times = []
    for run in runs:
        if run.get("items_per_second"):
            times.append(1e9 / run["items_per_second"])
        else:
            wall = re.search(r"/(real|manual)_time\b", name)
            times.append(run["real_time" if wall else "cpu_time"] * NANOSECONDS[run["time_unit"]])
    ns = median(times)
    notes = [goal.note] if goal and goal.note else []
    for key in runs[0]:
        if key not in KNOWN_KEYS and key != ALLOCATIONS:
            notes.append("%s %s" % (key, number(median([r[key] for r in runs]))))
    allocs = median([r[ALLOCATIONS] for r in runs]) if ALLOCATIONS in runs[0] else None
    text, met = "", None
    if goal and goal.must is not None:
        text, met = "<= %s, aim %s" % (number(goal.must), number(goal.aim)), ns <= goal.must
    return Row(program, name, describe(name), ns, min(times), allocs, text, met, "; ".join(notes))


def number(value):
    """Three figures, and thousands apart."""
    if value is None:
        return ""
    if abs(value) >= 100 or value == int(value):
        return format(int(round(value)), ",")
    return "%.1f" % value if abs(value) >= 10 else "%.2f" % value


def allocations(value):
    if value is None:
        return ""
    # What once filled a free list and never comes again is none in the steady state.
    return "0" if value < 0.001 else "%.3g" % value


def cells(row):
    goal = row.goal
    if row.met is not None:
        goal += "  ok" if row.met else "  MISSED"
    return [row.operation, number(row.ns), number(row.best), allocations(row.allocs), goal, row.note]


HEADINGS = ["operation", "ns/op", "best", "allocs/op", "goal", "note"]
TO_THE_RIGHT = (1, 2, 3)


def by_program(rows):
    sections = collections.OrderedDict()
    for row in rows:
        sections.setdefault(row.program, []).append(row)
    return sections.items()


def as_text(rows):
    widths = [
        max(len(line[column]) for line in [HEADINGS] + [cells(row) for row in rows])
        for column in range(len(HEADINGS))
    ]

    def line(texts):
        padded = [
            text.rjust(width) if column in TO_THE_RIGHT else text.ljust(width)
            for column, (text, width) in enumerate(zip(texts, widths))
        ]
        return "  ".join(padded).rstrip()

    out = [line(HEADINGS), "-" * max(len(line(cells(row))) for row in rows)]
    for program, section in by_program(rows):
        out += ["", "//%s:%s" % tuple(program.split("/", 1))]
        out += [line(cells(row)) for row in section]
    return "\n".join(out)


def as_markdown(rows):
    out = []
    for program, section in by_program(rows):
        out += ["", "**%s**" % program, ""]
        out.append("| " + " | ".join(HEADINGS) + " |")
        out.append("|" + "|".join("---:" if c in TO_THE_RIGHT else "---" for c in range(len(HEADINGS))) + "|")
        out += ["| " + " | ".join(cells(row)) + " |" for row in section]
    return "\n".join(out[1:])


def as_json(rows, context):
    def one(row):
        return {
            "program": row.program, "benchmark": row.name, "ns": row.ns, "best": row.best,
            "allocations": row.allocs, "goal": row.goal, "met": row.met, "note": row.note,
        }  # fmt: skip

    return json.dumps({"context": context, "rows": [one(row) for row in rows]}, indent=1)


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_program(program, *arguments):
    done = subprocess.run(
        [os.path.abspath(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise RuntimeError("exit code %d\n%s" % (done.returncode, done.stderr.strip()))
    return done.stdout


def list_benchmarks(program, options):
    """Their names. Those that the filter leaves out are not among them."""
    chosen = options.filter
    if not chosen and not options.all and program in DETAILS:
        chosen = "-" + DETAILS[program]
    listed = run_program(program, "--benchmark_list_tests=true", *(["--benchmark_filter=" + chosen] if chosen else []))
    # One that matches nothing is an error of Google Benchmark's, in words.
    return [line for line in listed.splitlines() if line.startswith("BM_")]


def run_benchmark(program, name, options):
    """What Google Benchmark writes as JSON, of one run of one benchmark.

    In a process of its own: what others leave behind, such as free lists in an order
    that no cache likes, is not this one's.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        run_program(
            program,
            "--benchmark_filter=^%s$" % re.escape(name),
            "--benchmark_out=" + out,
            "--benchmark_out_format=json",
            "--benchmark_min_time=%g" % options.min_time,
        )
        with open(out) as file:
            return json.load(file)


def machine(context):
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        model = "%d MHz" % context.get("mhz_per_cpu", 0)
    return "%d processors, %s" % (context.get("num_cpus", 0), model)


def main():
    parser = argparse.ArgumentParser(prog="report", description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one short pass: a look, not a measurement")
    parser.add_argument("--all", action="store_true", help="also the details that take long")
    parser.add_argument("--only", metavar="REGEX", default="", help="programs whose name matches, as `timer`")
    parser.add_argument("--filter", metavar="REGEX", default="", help="benchmarks whose name matches, as `BM_Post`")
    parser.add_argument("--min-time", type=float, metavar="SECONDS", help="of one in a pass (0.05)")
    parser.add_argument("--passes", type=int, metavar="N", help="of which the median counts (3)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true")
    form.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.min_time = options.min_time or (0.01 if options.quick else 0.05)
    options.passes = options.passes or (1 if options.quick else 3)

    programs = [program for program in options.programs if re.search(options.only, program)]
    if not programs:
        say("report: no benchmark program matches --only=%s; there are %s" % (options.only, ", ".join(options.programs) or "none"))
        return 2

    began = time.monotonic()
    busy_before = os.getloadavg()[0]
    runs, context, broken = collections.OrderedDict(), {}, []
    for program in programs:
        try:
            for name in list_benchmarks(program, options):
                runs[program, name] = []
        except (OSError, RuntimeError) as error:
            say("report: %s: %s" % (program, error))
            broken.append(program)
    for number_of_pass in range(options.passes):
        for i, (program, name) in enumerate(runs):
            if i == 0 or program != previous:
                say("[%d/%d] %4.0f s  %s" % (number_of_pass + 1, options.passes, time.monotonic() - began, program))
            previous = program
            if program in broken:
                continue
            try:
                result = run_benchmark(program, name, options)
            except (OSError, RuntimeError, ValueError) as error:
                say("report: %s, %s: %s" % (program, name, error))
                broken.append(program)
                continue
            context = result["context"]
            runs[program, name] += result["benchmarks"]
    say("      %4.0f s  done" % (time.monotonic() - began))
    rows = [row_of(program, name, results) for (program, name), results in runs.items() if results]

    if options.json:
        print(as_json(rows, context))
    else:
        remarks = [
            machine(context),
            "ns/op is the median of %d pass%s, best is the best of them" % (options.passes, "es" if options.passes > 1 else ""),
        ]
        # The report itself keeps one processor busy.
        if busy_before > 0.5 * (os.cpu_count() or 1):
            remarks.append("the machine was busy before this began (load %.1f): figures are too high" % busy_before)
        if context.get("library_build_type", "release") != "release":
            remarks.append("BUILT WITHOUT -c opt: THESE FIGURES MEAN NOTHING. tools/bazel run -c opt //bench:report")
        missed = [row for row in rows if row.met is False]
        with_goal = [row for row in rows if row.met is not None]
        remarks.append("%d of %d goals met; they are for a quiet machine" % (len(with_goal) - len(missed), len(with_goal)))
        if rows:
            print((as_markdown(rows) if options.markdown else as_text(rows)) + "\n")
        for remark in remarks:
            print(("* " if options.markdown else "") + remark)
    if context.get("library_build_type", "release") != "release":
        say("report: built without -c opt, so these figures mean nothing")
    for program in broken:
        say("report: %s failed" % program)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
