#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""proxy between clients and servers that are not weft's: plain sockets, curl, nc, socat."""

import contextlib
import http.server
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


def receive_all(connection):
    """Up to the end of the stream."""
    pieces = []
    while True:
        piece = connection.recv(1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


class Upstream:
    """A server that does `talk(connection)` with each client."""

    def __init__(self, talk):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._talk = talk
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.settimeout(program.PATIENCE)
                threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection):
        with connection, contextlib.suppress(OSError):
            self._talk(connection)

    def close(self):
        self._listener.close()


class ProxyTest(unittest.TestCase):
    def serve(self, talk, *flags):
        """A proxy in front of a server that does `talk`."""
        upstream = Upstream(talk)
        self.addCleanup(upstream.close)
        return self.serve_to(upstream.address, *flags)

    def serve_to(self, address, *flags):
        server = program.Program("proxy", "--port=0", "--to=" + address, *flags)
        self.addCleanup(server.__exit__)
        return server

    def connect(self, server):
        client = socket.create_connection(server.address(), timeout=program.PATIENCE)
        self.addCleanup(client.close)
        return client

    def stop(self, server):
        """Its last line."""
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.errors)
        return server.lines[-1]

    def test_half_close_by_the_client(self):
        server = self.serve(lambda connection: connection.sendall(receive_all(connection).upper()))
        client = self.connect(server)
        question = b"question " * 100_000

        client.sendall(question)
        client.shutdown(socket.SHUT_WR)

        self.assertEqual(receive_all(client), question.upper())
        self.assertEqual(
            self.stop(server),
            "done: 1 connections, 900000 bytes up, 900000 bytes down, 0 connections cut off",
        )

    def test_half_close_by_the_server(self):
        got = queue.Queue()

        def talk(connection):
            connection.sendall(b"hello")
            connection.shutdown(socket.SHUT_WR)
            got.put(receive_all(connection))

        server = self.serve(talk)
        client = self.connect(server)
        self.assertEqual(receive_all(client), b"hello")
        client.sendall(b"I go on")
        client.close()
        self.stop(server)
        self.assertEqual(got.get(timeout=program.PATIENCE), b"I go on")

    def test_a_reset_is_passed_on(self):
        ended = threading.Event()

        def talk(connection):
            connection.sendall(b"x")
            with contextlib.suppress(OSError):
                receive_all(connection)
            ended.set()

        server = self.serve(talk)
        client = self.connect(server)
        self.assertEqual(client.recv(1), b"x")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        self.assertTrue(ended.wait(program.PATIENCE))
        self.assertIn("0 connections cut off", self.stop(server))

    def test_many_at_once_and_much(self):
        server = self.serve(lambda connection: connection.sendall(receive_all(connection)))
        data = os.urandom(1 << 20)
        wrong = []

        def talk():
            client = socket.create_connection(server.address(), timeout=program.PATIENCE)
            with client:
                sender = threading.Thread(target=lambda: (client.sendall(data), client.shutdown(1)))
                sender.start()
                if receive_all(client) != data:
                    wrong.append(client)
                sender.join()

        threads = [threading.Thread(target=talk) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertIn("done: 20 connections, 20971520 bytes up, 20971520 bytes down", self.stop(server))

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = "127.0.0.1:%d" % closed.getsockname()[1]
        server = self.serve_to(address)
        self.assertEqual(receive_all(self.connect(server)), b"")
        self.stop(server)
        self.assertEqual(len(server.errors), 1)
        self.assertIn("proxy: connect to", server.errors[0])
        self.assertIn("ECONNREFUSED", server.errors[0])

    def test_stops_though_a_connection_does_not_end(self):
        server = self.serve(receive_all, "--grace=100")
        client = self.connect(server)
        client.sendall(b"x")
        server.signal(signal.SIGTERM)
        self.assertEqual(receive_all(client), b"")
        self.assertEqual(server.wait(), 0)
        self.assertIn("1 connections cut off", server.lines[-1])

    def test_usage(self):
        for flags in ([], ["--to=nowhere"], ["--to=:1"], ["--to=a:0"], ["--to=a:b"]):
            result = program.run("proxy", *flags)
            self.assertEqual(result.code, 2, flags)
            self.assertIn("--to=HOST:PORT", result.err)

    def test_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        server = self.serve_to("127.0.0.1:%d" % upstream.server_address[1])
        url = "http://%s:%d/" % server.address()
        data = "x" * 300_000
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--max-time", "60", "--data-binary", "@-", url, url],
            input=data,
            capture_output=True,
            text=True,
            timeout=program.PATIENCE,
        )
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(done.stdout), 2 * len(data))
        # Both requests by one connection.
        self.assertIn("done: 1 connections", self.stop(server))

    def test_nc_and_socat(self):
        server = self.serve(lambda connection: connection.sendall(receive_all(connection)))
        host, port = server.address()
        commands = [["nc", "-N", host, str(port)], ["socat", "-t60", "-", "TCP:%s:%d" % (host, port)]]
        found = [command for command in commands if shutil.which(command[0])]
        if not found:
            self.skipTest("neither nc nor socat is installed")
        for command in found:
            done = subprocess.run(
                command, input=b"to and fro", capture_output=True, timeout=program.PATIENCE
            )
            self.assertEqual(done.stdout, b"to and fro", command)


if __name__ == "__main__":
    unittest.main()
