#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The backends side by side: the table, and that all of the work can be done on each."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pollers

PROGRAMS = sys.argv[1:3]


def run(*arguments):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pollers.py")
    return subprocess.run([sys.executable, script, *PROGRAMS, *arguments], capture_output=True, text=True)


class TableTest(unittest.TestCase):
    RUNS = {
        ("echo 64 B, 64", "epoll"): [{"cpu_us": c, "calls": 2.0} for c in (5.0, 4.0, 90.0)],
        ("echo 64 B, 64", "io_uring"): [{"cpu_us": c, "calls": -1} for c in (4.0, 3.0, 2.0)],
    }

    def test_shows_medians_and_how_they_compare_with_the_first(self):
        lines = pollers.as_table(self.RUNS, ["epoll", "io_uring"]).splitlines()

        self.assertEqual(lines[0].split(), "server CPU, us a request epoll io_uring".split())
        self.assertEqual(lines[1].split(), "echo 64 B, 64 5.00 3.00 (0.60x)".split())

    def test_what_was_not_counted_is_a_dash(self):
        table = pollers.as_table(self.RUNS, ["epoll", "io_uring"])

        calls = table.splitlines()[table.splitlines().index("") + 2]
        self.assertEqual(calls.split(), "echo 64 B, 64 2.000 -".split())

    def test_shows_nothing_of_what_was_not_measured(self):
        table = pollers.as_table(self.RUNS, ["epoll", "io_uring"])

        self.assertNotIn("accept", table)
        self.assertNotIn("latency", table)


class RunTest(unittest.TestCase):
    def measure(self, only, poller="epoll,poll"):
        done = run("--json", "--passes=1", "--seconds=0.05", "--poller=" + poller, "--only=" + only)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["results"]

    def test_all_of_the_work_is_done_on_each(self):
        for result in self.measure("accept|, 1$|, 64$|wake"):
            figures = result["runs"][0]
            if result["work"].startswith("wake"):
                self.assertGreater(figures["wake_ns"], 0, result)
                continue
            self.assertGreater(figures["rate"], 0, result)
            self.assertGreater(figures["cpu_us"], 0, result)
            self.assertGreater(figures["p50_us"], 0, result)

    def test_each_request_is_counted_by_the_kernel_if_it_lets_us(self):
        figures = self.measure("echo 64 B, 1$", "epoll")[0]["runs"][0]

        if figures["calls"] >= 0:
            # epoll_wait, recv, send.
            self.assertAlmostEqual(figures["calls"], 3, delta=0.3)

    def test_a_backend_that_is_not_there_is_named(self):
        done = run("--poller=nosuch", "--only=64 B, 1$", "--quick")

        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no poller 'nosuch'", done.stdout)

    def test_work_that_there_is_not_is_named(self):
        done = run("--only=nosuch")

        self.assertEqual(done.returncode, 2)
        self.assertIn("nosuch", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
