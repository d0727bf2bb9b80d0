#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The tour, from its first line to its exit code."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


class TourTest(unittest.TestCase):
    def test_it_goes_all_the_way(self):
        done = program.run("tour")

        self.assertEqual((done.code, done.err), (0, ""), done.out)
        self.assertEqual(done.lines[-1], "All is well.")
        # In this order.
        position = 0
        for text in (
            "listening on 127.0.0.1:",
            "are connected, and ask as fast as they can",
            "found 25,997",
            "weft::TimeoutError: timed out",
            "the task is cancelled",
            "who comes now: connect to 127.0.0.1:",
            "who was there has been answered",
            "the last connection is closed",
            "connections ",
            "requests ",
            "wake-ups ",
        ):
            found = done.out.find(text)
            self.assertNotEqual(found, -1, "%r is not in\n%s" % (text, done.out))
            if text not in ("found 25,997", "weft::TimeoutError: timed out"):  # These take their time.
                self.assertGreater(found, position, text)
                position = found

    def test_the_timeline_is_in_order_and_in_columns(self):
        done = program.run("tour", "--clients=10", "--rush=100", "--calm=700")

        times = [re.match(r" *([0-9.]+) ms  (\w+) +\S", line) for line in done.lines]
        times = [float(match[1]) for match in times if match]
        self.assertGreater(len(times), 12)
        self.assertEqual(times, sorted(times))

    def test_wrong_flags(self):
        for flag in ("--clients=0", "--clints=5", "--poller=magic"):
            done = program.run("tour", flag)

            self.assertEqual((done.code, done.out), (2, ""))
            self.assertIn(flag.split("=")[0 if "clints" in flag else 1], done.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
