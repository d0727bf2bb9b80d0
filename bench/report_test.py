#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The table that the report makes, of benchmark programs that only pretend."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

REPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.py")

# Lists the benchmarks, or writes the runs of one to the file that --benchmark_out
# names: the first in the first pass, and so on.
PRETENDER = """#!/usr/bin/env python3
import json, os, re, sys
context, benchmarks = json.loads(%r)
flags = dict(a[2:].split("=", 1) for a in sys.argv[1:])
chosen = flags.get("benchmark_filter", "")
names = [name for name in benchmarks if re.search(chosen, name)]
if "benchmark_list_tests" in flags:
    print("\\n".join(names))
    sys.exit()
count = os.path.join(os.path.dirname(sys.argv[0]), "count_" + re.sub("[^A-Za-z]", "", names[0]))
with open(count, "a+") as file:
    pass_number = file.tell()
    file.write(".")
runs = benchmarks[names[0]]
with open(flags["benchmark_out"], "w") as file:
    json.dump({"context": context, "benchmarks": [runs[pass_number %% len(runs)]]}, file)
"""


def run_of(**figures):
    fields = {"run_type": "iteration", "iterations": 10, "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"}
    fields.update(figures)
    return fields


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, name, benchmarks, build="release"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        context = {"num_cpus": 2, "library_build_type": build}
        with open(path, "w") as file:
            file.write(PRETENDER % json.dumps([context, benchmarks]))
        os.chmod(path, stat.S_IRWXU)
        return name

    def report(self, *arguments):
        return subprocess.run(
            [sys.executable, REPORT, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60
        )

    def row(self, text, operation):
        (line,) = [line for line in text.splitlines() if line.startswith(operation + "  ")]
        return re.split(r"\s{2,}", line)

    def test_median_of_the_passes_in_the_programs_order(self):
        runs = {
            "BM_Second/size:100000": [run_of(items_per_second=1e6)],
            "BM_First": [run_of(items_per_second=ips) for ips in (1e9, 0.25e9, 0.5e9)],
        }

        done = self.report(self.program("core/x_benchmark", runs))

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.row(done.stdout, "first"), ["first", "2", "1"])
        self.assertEqual(self.row(done.stdout, "second, size 100,000"), ["second, size 100,000", "1,000", "1,000"])
        self.assertLess(done.stdout.index("second"), done.stdout.index("first"))

    def test_time_where_there_are_no_items(self):
        runs = {"BM_Cpu": [run_of()], "BM_Wall/real_time": [run_of()]}

        done = self.report(self.program("core/x_benchmark", runs))

        self.assertEqual(self.row(done.stdout, "cpu")[1], "1,000")
        self.assertEqual(self.row(done.stdout, "wall")[1], "2,000")

    def test_goals_allocations_and_other_counters(self):
        runs = {
            "BM_PostBatch": [run_of(items_per_second=1e8, allocs=0.00001)],
            "BM_SpawnAndJoin": [run_of(items_per_second=1e6, allocs=2, calls=3)],
        }

        done = self.report(self.program("loop/loop_benchmark", runs), "--quick")

        self.assertEqual(self.row(done.stdout, "post batch")[3:], ["0", "<= 12, aim 6", "ok"])
        self.assertEqual(self.row(done.stdout, "spawn and join")[3:], ["2", "<= 40, aim 20", "MISSED", "calls 3"])
        self.assertIn("1 of 2 goals met", done.stdout)

    def test_names(self):
        runs = {"BM_PingOfATaskByHand<Queue<int>>/tasks:2/real_time": [run_of()]}

        done = self.report(self.program("core/x_benchmark", runs), "--quick")

        self.assertIn("ping of a task by hand, queue, int, tasks 2", done.stdout)

    def test_a_debug_build_says_so(self):
        done = self.report(self.program("core/x_benchmark", {"BM_A": [run_of()]}, build="debug"))

        self.assertIn("BUILT WITHOUT -c opt", done.stdout)
        self.assertIn("without -c opt", done.stderr)

    def test_other_forms(self):
        program = self.program("core/x_benchmark", {"BM_A": [run_of(items_per_second=1e9)]})

        rows = json.loads(self.report(program, "--json").stdout)["rows"]
        markdown = self.report(program, "--markdown").stdout

        self.assertEqual((rows[0]["benchmark"], rows[0]["ns"]), ("BM_A", 1))
        self.assertIn("| a | 1 | 1 |", markdown)

    def test_a_program_that_fails_is_named_and_the_others_count(self):
        good = self.program("core/x_benchmark", {"BM_A": [run_of()]})
        bad = self.program("core/bad_benchmark", {})
        with open(os.path.join(self.folder, bad), "w") as file:
            file.write("#!/bin/sh\necho sorry >&2; exit 3\n")

        done = self.report(bad, good)

        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3\nsorry", done.stderr)
        self.assertEqual(self.row(done.stdout, "a")[1], "1,000")

    def test_only(self):
        program = self.program("core/x_benchmark", {"BM_A": [run_of()]})

        done = self.report(program, "--only=timer")

        self.assertEqual(done.returncode, 2)
        self.assertIn("--only=timer", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
