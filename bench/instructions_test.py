#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""What the core paths cost, against recorded bounds: instructions, and allocations.

Both are counted and not timed (instructions by valgrind's callgrind), so that a busy machine
changes nothing. The program is built with -c opt, however this test is built. Whoever makes a
path dearer finds it here; whoever makes it cheaper lowers the bound.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1])

# Instructions an operation, and calls of malloc(). A round looks at the kernel after 50 us,
# which under callgrind is earlier: that is what the bounds leave room for.
BOUNDS = {
    "post_chain": (118, 0),
    "post_batch": (60, 0),
    "switch_2": (140, 0),
    "switch_1000": (97, 0),
    "spawn": (310, 0),
}
FEW, MANY = 20_000, 120_000


def instructions(work, count):
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM, work, str(count)],
        capture_output=True,
        text=True,
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or not found:
        raise RuntimeError(done.stderr)
    return int(found.group(1).replace(",", ""))


class InstructionsTest(unittest.TestCase):
    def setUp(self):
        if shutil.which("valgrind") is None:
            print("not run on this machine: the bounds on instructions: there is no valgrind")
            self.skipTest("there is no valgrind")

    def test_no_path_is_dearer_than_it_was(self):
        for work, (bound, _) in BOUNDS.items():
            # What a program costs to start is in both.
            each = (instructions(work, MANY) - instructions(work, FEW)) / (MANY - FEW)
            print("%-12s %6.1f instructions, at most %d" % (work, each, bound))
            with self.subTest(work):
                self.assertLessEqual(each, bound)
                self.assertGreater(each, 0.75 * bound, "it is much cheaper: lower the bound")

    def test_the_steady_state_allocates_nothing(self):
        for work, (_, bound) in BOUNDS.items():
            done = subprocess.run([PROGRAM, work, str(1_000_000)], capture_output=True, text=True, check=True)
            words = done.stdout.split()
            allocations = float(words[words.index("ns_allocs") + 1])
            with self.subTest(work):
                # A list of tasks, once, is not an operation's.
                self.assertLessEqual(allocations, bound + 0.001)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
