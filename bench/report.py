#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runs all benchmarks that lie beside the code, and makes one table of them.

  tools/bazel run -c opt //bench:report                   a table
  tools/bazel run -c opt //bench:report -- --markdown     one to paste
  tools/bazel run -c opt //bench:report -- --quick        a look, in half a minute
  tools/bazel run -c opt //bench:report -- --only=timer   some of the programs

A figure is the median of several repetitions, which are spread over the run of
its program. Foreign load makes them worse, by a factor of two and more, and never
better: compare figures of one run, not of two.
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


def describe(name):
    """BM_PostFromThreads/producers:4/real_time -> "post from threads, producers 4"."""
    parts = name.split("/")
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"^BM_", "", parts[0]))
    text = words[:1].lower() + re.sub(r"[A-Z](?![A-Z])", lambda m: m.group().lower(), words[1:])
    for part in parts[1:]:
        if part in ("real_time", "manual_time", "process_time") or part.startswith(("repeats:", "min_time:")):
            continue
        key, _, value = part.rpartition(":")
        text += ", " + (key + " " if key else "") + (format(int(value), ",") if value.isdigit() else value)
    return text


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


Row = collections.namedtuple("Row", "program name operation ns spread allocs goal met note")


def rows_of(program, runs):
    """One row for each benchmark of a program, in its order, of the JSON objects of its repetitions."""
    by_name = collections.OrderedDict()
    runs = sorted(runs, key=lambda run: (run.get("family_index", 0), run.get("per_family_instance_index", 0)))
    for run in runs:
        if run.get("run_type", "iteration") == "iteration":
            by_name.setdefault(run.get("run_name", run["name"]), []).append(run)
    rows = []
    for name, repetitions in by_name.items():
        folder = program.split("/")[0]
        goal = next((g for g in GOALS if re.search(g.pattern, folder + "/" + name)), None)
        failed = next((r["error_message"] for r in repetitions if r.get("error_occurred")), None)
        if failed is not None:
            rows.append(Row(program, name, describe(name), None, None, None, "", None, failed))
            continue
        times = []
        for run in repetitions:
            if run.get("items_per_second"):
                times.append(1e9 / run["items_per_second"])
            else:
                wall = re.search(r"/(real|manual)_time\b", name)
                times.append(run["real_time" if wall else "cpu_time"] * NANOSECONDS[run["time_unit"]])
        ns = median(times)
        spread = (max(times) - min(times)) / ns if ns else 0
        notes = [goal.note] if goal and goal.note else []
        for key in repetitions[0]:
            if key not in KNOWN_KEYS and key != ALLOCATIONS:
                notes.append("%s %s" % (key, number(median([r[key] for r in repetitions]))))
        allocs = median([r[ALLOCATIONS] for r in repetitions]) if ALLOCATIONS in repetitions[0] else None
        text, met = "", None
        if goal and goal.must is not None:
            text, met = "<= %s, aim %s" % (number(goal.must), number(goal.aim)), ns <= goal.must
        rows.append(Row(program, name, describe(name), ns, spread, allocs, text, met, "; ".join(notes)))
    return rows


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
    spread = "" if row.spread is None else "%.0f %%" % (100 * row.spread)
    return [row.operation, number(row.ns), spread, allocations(row.allocs), goal, row.note]


HEADINGS = ["operation", "ns/op", "spread", "allocs/op", "goal", "note"]
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
            "program": row.program, "benchmark": row.name, "ns": row.ns, "spread": row.spread,
            "allocations": row.allocs, "goal": row.goal, "met": row.met, "note": row.note,
        }  # fmt: skip

    return json.dumps({"context": context, "rows": [one(row) for row in rows]}, indent=1)


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_program(program, options):
    """The JSON that Google Benchmark writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        command = [
            os.path.abspath(program),
            "--benchmark_out=" + out,
            "--benchmark_out_format=json",
            "--benchmark_min_time=%g" % options.min_time,
            "--benchmark_repetitions=%d" % options.repetitions,
            "--benchmark_enable_random_interleaving=true",
        ]
        if options.filter:
            command.append("--benchmark_filter=" + options.filter)
        elif program in DETAILS and not options.all:
            command.append("--benchmark_filter=-" + DETAILS[program])
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError("exit code %d\n%s" % (done.returncode, done.stderr.strip()))
        with open(out) as file:
            text = file.read()
        return json.loads(text) if text.strip() else {"benchmarks": []}


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
    parser.add_argument("--quick", action="store_true", help="one short repetition: a look, not a measurement")
    parser.add_argument("--all", action="store_true", help="also the details that take long")
    parser.add_argument("--only", metavar="REGEX", default="", help="programs whose name matches, as `timer`")
    parser.add_argument("--filter", metavar="REGEX", default="", help="benchmarks whose name matches, as `BM_Post`")
    parser.add_argument("--min-time", type=float, metavar="SECONDS", help="of a repetition (0.05)")
    parser.add_argument("--repetitions", type=int, metavar="N", help="of which the median counts (3)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true")
    form.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.min_time = options.min_time or (0.01 if options.quick else 0.05)
    options.repetitions = options.repetitions or (1 if options.quick else 3)

    programs = [program for program in options.programs if re.search(options.only, program)]
    if not programs:
        say("report: no benchmark program matches --only=%s; there are %s" % (options.only, ", ".join(options.programs) or "none"))
        return 2

    began = time.monotonic()
    rows, context, broken = [], {}, []
    busy_before = os.getloadavg()[0]
    for i, program in enumerate(programs):
        say("[%d/%d] %3.0f s  %s" % (i + 1, len(programs), time.monotonic() - began, program))
        try:
            result = run_program(program, options)
        except (OSError, RuntimeError, ValueError) as error:
            say("report: %s: %s" % (program, error))
            broken.append(program)
            continue
        context = result.get("context", context)
        rows += rows_of(program, result["benchmarks"])
    say("        %3.0f s  done" % (time.monotonic() - began))

    if options.json:
        print(as_json(rows, context))
    else:
        remarks = [
            machine(context),
            "median of %d; spread: from the best to the worst of them" % options.repetitions,
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
