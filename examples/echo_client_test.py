#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""echo_client with echo_server, and with servers that are not weft's."""

import os
import signal
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


class EchoClientTest(unittest.TestCase):
    def serve(self):
        server = program.Program("echo_server", "--port=0")
        self.addCleanup(server.__exit__)
        return "--port=%d" % server.address()[1]

    def test_lines_from_arguments(self):
        done = program.run("echo_client", self.serve(), "hello", "big world")

        self.assertEqual((done.code, done.out, done.err), (0, "hello\nbig world\n", ""))

    def test_lines_from_a_pipe(self):
        text = "".join("line %d\n" % i for i in range(20_000))

        done = program.run("echo_client", self.serve(), stdin=text)

        self.assertEqual((done.code, done.err), (0, ""))
        self.assertEqual(done.out, text)

    def test_lines_from_a_file(self):
        port = self.serve()
        with open(os.path.abspath(__file__)) as file:
            done = subprocess.run(
                [program.path("echo_client"), port], stdin=file, capture_output=True, text=True, timeout=program.PATIENCE
            )

        with open(os.path.abspath(__file__)) as file:
            self.assertEqual(done.stdout, file.read())

    def test_each_answer_comes_while_one_types(self):
        with program.Program("echo_client", self.serve()) as client:
            client.type("one\n")
            client.wait_for("one")
            client.type("two\n")
            client.wait_for("two")
            client.close_input()

            self.assertEqual(client.wait(), 0)

    def test_it_ends_with_the_server(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def say_goodbye():
                peer, _ = listener.accept()
                peer.sendall(b"goodbye")  # No end of a line.
                peer.close()

            thread = threading.Thread(target=say_goodbye)
            thread.start()
            with program.Program("echo_client", "--port=%d" % listener.getsockname()[1]) as client:
                # Its stdin stays open.
                self.assertEqual(client.wait(), 0)
                self.assertEqual(client.lines, ["goodbye"])
            thread.join()

    def test_the_output_is_full(self):
        with open("/dev/full", "w") as full:
            done = program.run("echo_client", self.serve(), "hello", stdout=full)

        self.assertEqual(done.code, 1)
        self.assertIn("write to the standard output: No space left on device [ENOSPC]", done.err)

    def test_the_input_cannot_be_read(self):
        directory = os.open("/tmp", os.O_RDONLY)
        self.addCleanup(os.close, directory)
        done = program.run("echo_client", self.serve(), stdin=directory)

        self.assertEqual((done.code, done.out), (1, ""))
        self.assertIn("read the standard input: Is a directory [EISDIR]", done.err)

    def test_there_is_no_input(self):
        # Its connection has another number than the input had.
        done = program.run("echo_client", self.serve(), closed=[0])

        self.assertEqual((done.code, done.out), (1, ""))
        self.assertIn("read the standard input: Bad file descriptor [EBADF]", done.err)

    def test_interrupt(self):
        with program.Program("echo_client", self.serve()) as client:
            client.type("one\n")
            client.wait_for("one")
            client.signal(signal.SIGINT)

            self.assertEqual((client.wait(), client.errors), (130, []))

    def test_nobody_listens(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]

            done = program.run("echo_client", "--port=%d" % port, "hello")

        self.assertEqual((done.code, done.out), (2, ""))
        self.assertIn("127.0.0.1:%d" % port, done.err)

    def test_wrong_flags(self):
        for flag in ("--hots=x", "--port=99999", "--poller=magic", "--host=300.1.2.3"):
            done = program.run("echo_client", flag, "hello")

            self.assertEqual((done.code, done.out), (2, ""), flag)
            self.assertIn(flag.split("=")[1] if flag != "--hots=x" else "--hots", done.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
