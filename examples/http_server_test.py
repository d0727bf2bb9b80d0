#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""http_server and clients that are not weft's: http.client, plain sockets, curl and wrk."""

import concurrent.futures
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HELLO = b"Hello, world!\n"


def connect(server):
    return socket.create_connection(server.address(), timeout=program.PATIENCE)


def receive_all(client):
    """Up to the end of the stream."""
    pieces = []
    while True:
        piece = client.recv(1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


class Response:
    def __init__(self, file):
        self.line = file.readline().decode().rstrip()
        self.status = int(self.line.split()[1]) if self.line else None
        self.headers = http.client.parse_headers(file)
        self.body = file.read(int(self.headers.get("Content-Length", 0)))


def ask(client, question):
    """The response to it; there is no more than that to come."""
    client.sendall(question)
    with client.makefile("rb") as file:
        return Response(file)


class HttpServerTest(unittest.TestCase):
    def serve(self, *flags):
        server = program.Program("http_server", "--port=0", *flags)
        self.addCleanup(server.__exit__)
        server.address()
        return server

    def stop(self, server, number=signal.SIGTERM):
        """Its last line."""
        server.signal(number)
        self.assertEqual(server.wait(), 0, server.errors)
        self.assertEqual(server.errors, [])
        return server.lines[-1]

    # -- Clients of others.

    def test_http_client(self):
        server = self.serve()
        client = http.client.HTTPConnection(*server.address(), timeout=program.PATIENCE)
        for method, path, body, status, answer in (
            ("GET", "/", None, 200, HELLO),
            ("HEAD", "/", None, 200, b""),
            ("POST", "/echo", b"some\0bytes", 200, b"some\0bytes"),
            ("POST", "/echo", b"x" * 500_000, 200, b"x" * 500_000),
            ("POST", "/echo", iter([b"chunk", b"by", b"chunk"]), 200, b"chunkbychunk"),
            ("GET", "/delay/1?a=b", None, 200, b"late\n"),
            ("GET", "/nowhere", None, 404, b"there is nothing here\n"),
            ("DELETE", "/", None, 405, b"that method is not allowed here\n"),
        ):
            with self.subTest((method, path)):
                client.request(method, path, body)
                response = client.getresponse()
                self.assertEqual((response.status, response.read()), (status, answer))
                self.assertFalse(response.will_close)
        client.close()

        self.assertEqual(self.stop(server), "done: 1 connections, 8 requests, 0 cut off")

    def curl(self, server, path, *arguments):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        done = subprocess.run(
            ["curl", "-sS", "--max-time", str(program.PATIENCE), *arguments, "http://%s:%d%s" % (*server.address(), path)],
            capture_output=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_curl(self):
        server = self.serve("--max-body=100000")
        self.assertEqual(self.curl(server, "/"), HELLO)
        self.assertIn(b"Content-Length: 14", self.curl(server, "/", "--head"))
        self.assertEqual(self.curl(server, "/echo", "--data", "hello"), b"hello")
        self.assertEqual(self.curl(server, "/", "--http1.0"), HELLO)
        chunked = self.curl(server, "/echo", "--data", "x" * 10_000, "-H", "Transfer-Encoding: chunked")
        self.assertEqual(chunked, b"x" * 10_000)
        expecting = self.curl(server, "/echo", "--data", "x" * 10_000, "-H", "Expect: 100-continue", "--include")
        self.assertIn(b"HTTP/1.1 100 Continue", expecting)
        self.assertTrue(expecting.endswith(b"x" * 10_000))
        too_much = self.curl(server, "/echo", "--data", "x" * 100_001, "-o", "/dev/null", "-w", "%{http_code}")
        self.assertEqual(too_much, b"413")

    def wrk(self, server, *arguments):
        """How many requests it made; all went well."""
        if not shutil.which("wrk"):
            self.skipTest("wrk is not installed")
        done = subprocess.run(
            ["wrk", "-t1", "-c64", "-d1s", *arguments, "http://%s:%d/" % server.address()],
            capture_output=True,
            text=True,
            timeout=program.PATIENCE,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Socket errors", done.stdout)
        self.assertNotIn("Non-2xx", done.stdout)
        return int(re.search(r"(\d+) requests in", done.stdout).group(1))

    def test_wrk(self):
        server = self.serve("--loops=2")
        made = self.wrk(server)
        self.assertGreater(made, 100)

        # Of the last ones wrk did not wait for an answer.
        served = int(re.search(r"(\d+) requests", self.stop(server)).group(1))
        self.assertGreaterEqual(served, made)

    def test_wrk_without_keep_alive(self):
        self.assertGreater(self.wrk(self.serve(), "-H", "Connection: close"), 10)

    # -- By hand.

    def test_pipelining(self):
        server = self.serve("--loops=1")
        posted = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
        with connect(server) as client, client.makefile("rb") as file:
            client.sendall((GET + posted) * 100)
            for _ in range(100):
                self.assertEqual(Response(file).body, HELLO)
                self.assertEqual(Response(file).body, b"abc")

    def test_a_client_that_pipelines_and_does_not_read_is_held_up(self):
        server = self.serve("--loops=1")
        with connect(server) as slow:
            slow.setblocking(False)
            sent = 0
            try:
                while sent < 1 << 28:  # More than all buffers in between.
                    sent += slow.send(GET * 1000)
            except BlockingIOError:
                pass
            self.assertLess(sent, 1 << 28, "the server took everything, and must keep its answers somewhere")
            with connect(server) as other:
                self.assertEqual(ask(other, GET).body, HELLO)

    def test_a_head_in_pieces(self):
        with connect(self.serve()) as client:
            for piece in (b"GE", b"T / HT", b"TP/1.1\r", b"\nHost", b": a\r\n", b"\r"):
                client.sendall(piece)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.assertEqual(ask(client, b"\n").body, HELLO)

    def test_bad_input(self):
        server = self.serve("--max-head=1000", "--max-body=1000")
        chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        for question, status in (
            (b"hello\r\n\r\n", 400),
            (b"\x16\x03\x01\x00\xee", 400),
            (os.urandom(20).replace(b"\n", b"x") + b"\n\n", 400),
            (b"GET / HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
            (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000 + b"\r\n\r\n", 431),
            (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413),
            (chunked + b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", 413),
            (chunked + b"what?\r\n", 400),
        ):
            with self.subTest(question[:60]), connect(server) as client:
                response = ask(client, question)
                self.assertEqual(response.status, status)
                self.assertEqual(response.headers["Connection"], "close")
                self.assertEqual(receive_all(client), b"")
        with connect(server) as client:
            self.assertEqual(ask(client, GET).body, HELLO)

    # A close with unread bytes would be a reset, which can take the answer with it.
    def test_an_upload_that_is_refused_gets_its_answer(self):
        server = self.serve("--max-body=1000")
        head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n"
        for _ in range(5):
            with connect(server) as client:
                client.sendall(head + b"x" * 20_000_000)
                self.assertTrue(receive_all(client).startswith(b"HTTP/1.1 413 "))

    def test_a_slow_head(self):
        server = self.serve("--head-timeout=100", "--idle-timeout=100")
        with connect(server) as client:
            client.sendall(b"GET / HTTP/1.1\r\n")
            self.assertTrue(receive_all(client).startswith(b"HTTP/1.1 408 "))
        with connect(server) as client:
            self.assertEqual(receive_all(client), b"")

    def test_half_close(self):
        server = self.serve()
        with connect(server) as client:
            client.sendall(GET * 3)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(receive_all(client).count(HELLO), 3)

    # -- The end.

    def test_a_request_in_flight_is_answered_and_who_is_idle_is_closed(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                server = self.serve("--grace=60000", "--loops=1")
                with connect(server) as busy, connect(server) as half, connect(server) as idle:
                    busy.sendall(b"GET /delay/500 HTTP/1.1\r\nHost: a\r\n\r\n")
                    half.sendall(GET[:10])
                    # One loop: what came before this is known when this is answered.
                    self.assertEqual(ask(idle, GET).body, HELLO)

                    server.signal(number)
                    self.assertEqual(idle.recv(1), b"")
                    with self.assertRaises(OSError):
                        while True:
                            connect(server).close()
                    response = ask(half, GET[10:])
                    self.assertEqual((response.body, response.headers["Connection"]), (HELLO, "close"))
                    response = ask(busy, b"")
                    self.assertEqual((response.body, response.headers["Connection"]), (b"late\n", "close"))

                self.assertEqual(server.wait(), 0, server.errors)
                self.assertRegex(server.lines[-1], r"^done: \d+ connections, 3 requests, 0 cut off$")

    def test_after_the_grace_it_is_cut_off(self):
        server = self.serve("--grace=10", "--loops=1")
        with connect(server) as busy, connect(server) as other:
            busy.sendall(b"GET /delay/3600000 HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(ask(other, GET).body, HELLO)

            self.assertEqual(self.stop(server), "done: 2 connections, 1 requests, 1 cut off")
            self.assertEqual(busy.recv(1), b"")

    def test_a_second_signal_does_not_wait(self):
        server = self.serve("--grace=3600000", "--loops=1")
        with connect(server) as busy, connect(server) as idle:
            busy.sendall(b"GET /delay/3600000 HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(ask(idle, GET).body, HELLO)
            server.signal()
            self.assertEqual(idle.recv(1), b"")

            server.signal()
            self.assertEqual(busy.recv(1), b"")
            self.assertEqual(server.wait(), 0, server.errors)

    def test_it_may_be_stopped_under_load(self):
        server = self.serve("--loops=3", "--grace=60000")

        def client():
            count = 0
            with connect(server) as connection:
                while True:
                    response = ask(connection, GET)
                    if response.status is None:  # It was closed between two requests.
                        return count
                    self.assertEqual(response.body, HELLO)
                    count += 1
                    if response.headers["Connection"] == "close":
                        return count

        def client_until_reset():
            try:
                return client()
            except ConnectionError:  # The same, seen later; or it came too late.
                return 0

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            clients = [pool.submit(client_until_reset) for _ in range(20)]
            with connect(server) as watcher:
                for _ in range(50):
                    self.assertEqual(ask(watcher, GET).body, HELLO)
            last = self.stop(server)
            for one in clients:
                one.result()
        self.assertTrue(last.endswith(", 0 cut off"), last)

    # -- What a user may get wrong.

    def fails(self, *flags):
        """Its complaint."""
        done = program.run("http_server", *flags)
        self.assertEqual((done.code, done.out), (2, ""))
        self.assertRegex(done.err, r"^http_server: [^\n]+\n$")
        return done.err

    def test_a_port_in_use(self):
        host, port = self.serve().address()

        self.assertIn("%s:%d" % (host, port), self.fails("--port=%d" % port))

    def test_wrong_flags(self):
        self.assertIn("--loops=0", self.fails("--loops=0"))
        self.assertIn("--max-body=-1", self.fails("--max-body=-1"))
        self.assertIn("magic", self.fails("--port=0", "--poller=magic"))
        self.assertIn("300.1.2.3", self.fails("--port=0", "--host=300.1.2.3"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
