#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The lines of every trace, as asyncio prints them.

G1 and so on are golden traces of the specification; the A-numbers are the rows that each shows.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

EXPECTED = {
    #
    "G1": ["main before sleep", "A start", "B start", "main after sleep", "A after yield", "B after yield"],
    "G2": ["main before yield", "sync callback runs", "main after yield"],
    #
    "G3": ["tick 0", "W go", "W done", "tick 1", "tick 2"],
    #
    "G4": ["heartbeat 0", "heartbeat 1", "heartbeat 2"],
    #
    "G5": [
        "main waiting", "fast begin", "mid begin", "slow begin", "fast end", "mid end", "slow end", "main done",
    ],
    #
    "G6": ["create", "wait", "t1 start", "t2 start", "t1 resume", "t2 resume", "end"],
    #
    "G7": ["Handle", "TimerHandle", "ready callback", "timer callback"],
    #
    "G8": ["start", "created", "1 s", "2 s", "end"],
    #
    "G9": ["start", "soon", "end"],
    "G10": ["cb 0", "cb 1", "cb 2", "cb 3", "cb 4", "main resumed"],
    #
    "G11": ["main returns", "cb 0", "cb 1", "cb 2", "cb 3", "cb 4"],
    #
    "G12": ["main does not wait", "bg 0"],
    #
    "G13": ["a", "c", "main 1", "b", "main 2"],
    #
    "G14": ["soon", "main 1", "later0", "main 2"],
    #
    "G15": ["set", "1", "2", "3"],
    #
    "G16": [
        "child cancelled", "child cleanup done", "report of the failure", "generator's cleanup", "job done", "result",
    ],
    #
    "G17": [
        "ping: pong",
        "ToThread(1 + 2): 3",
        "two RunInExecutor powers: 1024 243",
        "once: 99 under Run, 99 under RunUntilComplete",
    ],
}
REMARKS = {"G4": "(300 ms)\n", "G8": "2 s in all\n"}


class TracesTest(unittest.TestCase):
    def test_each_by_name(self):
        for name, lines in EXPECTED.items():
            with self.subTest(name):
                result = program.run("traces", name)

                self.assertEqual(result.lines, lines)
                self.assertEqual(result.err, REMARKS.get(name, ""))
                self.assertEqual(result.code, 0)

    def test_all_with_headings(self):
        result = program.run("traces")

        expected = []
        for name, lines in EXPECTED.items():
            expected += ["// " + name] + lines
        self.assertEqual(result.lines, expected)

    def test_list_names_them_all(self):
        result = program.run("traces", "--list")

        self.assertEqual([line.split()[0] for line in result.lines], list(EXPECTED))

    def test_unknown_name_and_flag(self):
        for argument in ("G99", "--lits"):
            result = program.run("traces", argument)

            self.assertEqual((result.code, result.out), (2, ""))
            self.assertIn(argument, result.err)

    def test_a_poller_that_there_is_not(self):
        result = program.run("traces", "G1", environment={"WEFT_POLLER": "nonsense"})

        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("nonsense", result.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
