#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""subprocess_pipeline, with what every system has as its stages."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


class SubprocessPipelineTest(unittest.TestCase):
    def test_stages_in_a_row(self):
        done = program.run(
            "subprocess_pipeline", "tr a-z A-Z", "sort -r", "head -2", stdin="pear\napple\nfig\n"
        )

        self.assertEqual((done.code, done.out), (0, "PEAR\nFIG\n"), done.err)
        self.assertIn("tr a-z A-Z: 15 bytes in, 15 bytes out, exit code 0", done.err)

    def test_the_usual_stages(self):
        done = program.run("subprocess_pipeline", stdin="b\na\n")

        self.assertEqual((done.code, done.out), (0, "A\nB\n"))

    def test_a_stage_that_has_seen_enough_ends_those_before(self):
        done = program.run("subprocess_pipeline", "exec yes", "head -1")

        self.assertEqual((done.code, done.out), (0, "y\n"), done.err)
        self.assertIn("exit code -13", done.err)  # SIGPIPE.

    def test_much_goes_through(self):
        data = "0123456789abcdef" * (1 << 16)
        done = program.run("subprocess_pipeline", "cat", "cat", "cat", stdin=data)

        self.assertEqual(done.code, 0, done.err)
        self.assertTrue(done.out == data)

    def test_input_and_output_may_be_files(self):
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
            source.write(b"from a file\n")
            source.seek(0)
            code = subprocess.call(
                [program.path("subprocess_pipeline"), "tr a-z A-Z"],
                stdin=source,
                stdout=target,
                stderr=subprocess.DEVNULL,
                timeout=program.PATIENCE,
            )
            target.seek(0)
            self.assertEqual((code, target.read()), (0, b"FROM A FILE\n"))

    def test_the_output_is_full(self):
        with open("/dev/full", "w") as full:
            done = program.run("subprocess_pipeline", "cat", stdin="hello\n", stdout=full)

        self.assertEqual(done.code, 1)
        self.assertIn("standard output: No space left on device [ENOSPC]", done.err)

    def test_the_input_cannot_be_read(self):
        directory = os.open("/tmp", os.O_RDONLY)
        self.addCleanup(os.close, directory)
        done = program.run("subprocess_pipeline", "cat", stdin=directory)

        self.assertEqual((done.code, done.out), (1, ""))
        self.assertIn("standard input: Is a directory [EISDIR]", done.err)

    def test_there_is_no_input_or_output(self):
        for fd, name in ((0, "standard input"), (1, "standard output")):
            done = program.run("subprocess_pipeline", "cat", closed=[fd])

            self.assertNotEqual(done.code, 0, name)
            self.assertIn(name, done.err)

    def test_who_wants_no_more_is_no_error(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = program.run("subprocess_pipeline", "cat", stdin="hello\n", stdout=writer)
        os.close(writer)

        self.assertEqual(done.code, 0, done.err)

    def test_the_last_exit_code_counts(self):
        self.assertEqual(program.run("subprocess_pipeline", "cat", "cat >/dev/null; exit 7").code, 7)
        self.assertEqual(program.run("subprocess_pipeline", "kill -9 $$").code, 137)

    def test_out_of_time(self):
        done = program.run("subprocess_pipeline", "--timeout=100", "exec sleep 1000")

        self.assertEqual((done.code, done.err), (124, "out of time\n"))

    def test_out_of_time_with_what_the_shell_has_started(self):
        # It ends when nobody has the standard error any more.
        done = program.run("subprocess_pipeline", "--timeout=100", "sleep 1000; true", "cat; true")

        self.assertEqual((done.code, done.err), (124, "out of time\n"))

    def test_ctrl_c(self):
        with program.Program("subprocess_pipeline", "echo started; exec sleep 1000") as pipeline:
            pipeline.wait_for("started")
            pipeline.signal(signal.SIGINT)
            self.assertEqual(pipeline.wait(), 130)

    def test_wrong_flags(self):
        for flag in ("--timeout=-1", "--poller=magic"):
            done = program.run("subprocess_pipeline", flag)

            self.assertEqual((done.code, done.out), (2, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
