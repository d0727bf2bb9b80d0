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

# Writes to the file that --benchmark_out names.
PRETENDER = """#!/usr/bin/env python3
import sys
out = [a for a in sys.argv if a.startswith("--benchmark_out=")][0].split("=", 1)[1]
open(out, "w").write(%r)
"""


def run_of(name, family, repetition, **figures):
    fields = {
        "name": name, "run_name": name, "run_type": "iteration", "family_index": family,
        "repetition_index": repetition, "iterations": 10, "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us",
    }  # fmt: skip
    fields.update(figures)
    return fields


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, name, runs, build="release"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        context = {"num_cpus": 2, "library_build_type": build}
        with open(path, "w") as file:
            file.write(PRETENDER % json.dumps({"context": context, "benchmarks": runs}))
        os.chmod(path, stat.S_IRWXU)
        return name

    def report(self, *arguments):
        return subprocess.run(
            [sys.executable, REPORT, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60
        )

    def row(self, text, operation):
        (line,) = [line for line in text.splitlines() if line.startswith(operation + "  ")]
        return re.split(r"\s{2,}", line)

    def test_median_of_the_repetitions_in_the_programs_order(self):
        runs = [
            run_of("BM_Second/size:100000", 1, 0, items_per_second=1e6),
            run_of("BM_First", 0, 2, items_per_second=1e9),
            run_of("BM_First", 0, 0, items_per_second=0.5e9),
            run_of("BM_First", 0, 1, items_per_second=0.25e9),
        ]

        done = self.report(self.program("core/x_benchmark", runs))

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.row(done.stdout, "first"), ["first", "2", "150 %"])
        self.assertEqual(self.row(done.stdout, "second, size 100,000")[1], "1,000")
        self.assertLess(done.stdout.index("first"), done.stdout.index("second"))

    def test_time_where_there_are_no_items(self):
        runs = [run_of("BM_Cpu", 0, 0), run_of("BM_Wall/real_time", 1, 0)]

        done = self.report(self.program("core/x_benchmark", runs))

        self.assertEqual(self.row(done.stdout, "cpu")[1], "1,000")
        self.assertEqual(self.row(done.stdout, "wall")[1], "2,000")

    def test_goals_allocations_and_other_counters(self):
        runs = [
            run_of("BM_PostBatch", 0, 0, items_per_second=1e8, allocs=0.00001),
            run_of("BM_SpawnAndJoin", 1, 0, items_per_second=1e6, allocs=2, calls=3),
        ]

        done = self.report(self.program("loop/loop_benchmark", runs))

        self.assertEqual(self.row(done.stdout, "post batch")[3:], ["0", "<= 12, aim 6", "ok"])
        self.assertEqual(self.row(done.stdout, "spawn and join")[3:], ["2", "<= 40, aim 20", "MISSED", "calls 3"])
        self.assertIn("1 of 2 goals met", done.stdout)

    def test_a_debug_build_says_so(self):
        done = self.report(self.program("core/x_benchmark", [run_of("BM_A", 0, 0)], build="debug"))

        self.assertIn("BUILT WITHOUT -c opt", done.stdout)
        self.assertIn("without -c opt", done.stderr)

    def test_other_forms(self):
        program = self.program("core/x_benchmark", [run_of("BM_A", 0, 0, items_per_second=1e9)])

        rows = json.loads(self.report(program, "--json").stdout)["rows"]
        markdown = self.report(program, "--markdown").stdout

        self.assertEqual((rows[0]["benchmark"], rows[0]["ns"]), ("BM_A", 1))
        self.assertIn("| a | 1 |", markdown)

    def test_a_program_that_fails_is_named_and_the_others_count(self):
        good = self.program("core/x_benchmark", [run_of("BM_A", 0, 0)])
        bad = self.program("core/bad_benchmark", [])
        with open(os.path.join(self.folder, bad), "w") as file:
            file.write("#!/bin/sh\necho sorry >&2; exit 3\n")

        done = self.report(bad, good)

        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3\nsorry", done.stderr)
        self.assertEqual(self.row(done.stdout, "a")[1], "1,000")

    def test_only(self):
        program = self.program("core/x_benchmark", [run_of("BM_A", 0, 0)])

        done = self.report(program, "--only=timer")

        self.assertEqual(done.returncode, 2)
        self.assertIn("--only=timer", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
