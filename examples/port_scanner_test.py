#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""port_scanner against ports that Python opens, closes, or lets nobody in at."""

import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


class PortScannerTest(unittest.TestCase):
    def listen(self, **options):
        listener = socket.create_server(("127.0.0.1", 0), **options)
        self.addCleanup(listener.close)
        return listener, listener.getsockname()[1]

    def closed(self):
        """A port that stays closed: somebody has it, and does not listen."""
        keeper = socket.socket()
        keeper.bind(("127.0.0.1", 0))
        self.addCleanup(keeper.close)
        return keeper.getsockname()[1]

    def silent(self):
        """A port that does not answer: its backlog is full."""
        listener, port = self.listen(backlog=0)
        for _ in range(4):
            client = socket.socket()
            self.addCleanup(client.close)
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        return port

    def test_open_and_closed(self):
        _, first = self.listen()
        _, second = self.listen()
        ports = sorted([first, second])
        result = program.run(
            "port_scanner", "--ports=%d,%d,%d" % (first, self.closed(), second), "127.0.0.1"
        )
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(
            result.lines,
            ["open: %d" % port for port in ports]
            + ["done: 127.0.0.1, 2 open, 1 refused, 0 silent, 0 failed"],
        )

    def test_timeout_of_each(self):
        silent = self.silent()
        _, port = self.listen()
        start = time.monotonic()
        result = program.run(
            "port_scanner", "--ports=%d,%d" % (silent, port), "--timeout=200", "--limit=1", "localhost"
        )
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("1 silent", result.lines[-1])
        self.assertEqual(result.lines[:-1], ["open: %d" % port])
        self.assertGreaterEqual(time.monotonic() - start, 0.2)

    def test_deadline_of_all(self):
        result = program.run(
            "port_scanner", "--ports=%d" % self.silent(), "--timeout=60000", "--deadline=200", "127.0.0.1"
        )
        self.assertEqual(result.code, 2)
        self.assertIn("not done in time", result.err)
        self.assertEqual(result.lines, ["done: 127.0.0.1, 0 open, 0 refused, 0 silent, 0 failed"])

    def test_limit(self):
        """However many ports there are, so many connections at a time."""
        listener, port = self.listen(backlog=100)
        result = program.run("port_scanner", "--ports=" + ",".join([str(port)] * 50), "--limit=3", "127.0.0.1")
        self.assertEqual(result.lines[0], "open: %d" % port)

    def test_many_ports(self):
        _, port = self.listen()
        result = program.run("port_scanner", "--ports=1-10000,%d" % port, "--limit=500", "127.0.0.1")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("open: %d" % port, result.lines)

    def test_usage(self):
        for flags in ([], ["a", "b"], ["--ports=0", "a"], ["--ports=2-1", "a"], ["--ports=x", "a"], ["--ports=", "a"]):
            result = program.run("port_scanner", *flags)
            self.assertEqual(result.code, 2, flags)
        result = program.run("port_scanner", "no such host")
        self.assertEqual(result.code, 2)
        self.assertIn('resolve "no such host"', result.err)


if __name__ == "__main__":
    unittest.main()
