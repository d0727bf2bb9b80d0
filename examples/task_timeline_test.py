#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""The timeline of tasks: what each does, in order, at its moment."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


class TaskTimelineTest(unittest.TestCase):
    def test_it_shows_what_each_task_does_and_when(self):
        done = program.run("task_timeline")

        self.assertEqual((done.code, done.err), (0, ""), done.out)
        events = [re.sub(r"round +\d+ +", "", line).split(None, 3) for line in done.lines]
        for name in ("consumer", "producer"):
            own = [" ".join(event) for event in events if event[2] == name]
            self.assertTrue(own[0].startswith("0.0 s %s starts" % name), own)
            self.assertEqual(own[-1], "2.0 s %s ends" % name, own)
        self.assertIn(["0.0", "s", "producer", "waits for <Sleep for another 1s>"], events)
        self.assertIn(["0.0", "s", "consumer", "waits for <Queue.Get>"], events)
        self.assertIn(["1.0", "s", "producer", "wakes"], events)
        self.assertIn(["1.0", "s", "consumer", "wakes"], events)
        of_main = [event[3] for event in events if event[2] == "main"]
        self.assertEqual(of_main[0], "wakes")
        self.assertTrue(of_main[1].startswith("waits for <TaskGroup tasks=2"), of_main)
        self.assertEqual(of_main[2:], ["wakes"])  # It ends when the instrument is gone.


if __name__ == "__main__":
    unittest.main()
