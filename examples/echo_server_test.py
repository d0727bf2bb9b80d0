#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""echo_server and clients that are not weft's: asyncio's, plain sockets, nc and socat."""

import asyncio
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


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


def ask(client, question):
    client.sendall(question)
    answer = b""
    while len(answer) < len(question):
        piece = client.recv(1 << 16)
        if not piece:
            break
        answer += piece
    return answer


def reset(client):
    """Closes with a RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


class EchoServerTest(unittest.TestCase):
    def serve(self, *flags):
        server = program.Program("echo_server", "--port=0", *flags)
        self.addCleanup(server.__exit__)
        return server

    def stop(self, server, number=signal.SIGTERM):
        """Its last line."""
        server.signal(number)
        self.assertEqual(server.wait(), 0, server.errors)
        self.assertEqual(server.errors, [])
        return server.lines[-1]

    def test_asyncio_client(self):
        server = self.serve()

        async def main():
            reader, writer = await asyncio.open_connection(*server.address())
            for line in (b"hello\n", b"\0\xff\n", b"x" * 50_000 + b"\n"):
                writer.write(line)
                await writer.drain()
                self.assertEqual(await reader.readexactly(len(line)), line)
            writer.close()
            await writer.wait_closed()

        asyncio.run(main())

        self.assertEqual(self.stop(server), "done: 1 connections, 50010 bytes, 0 connections cut off")

    def test_a_thousand_connections_at_once(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 1_200
        if soft != resource.RLIM_INFINITY and soft < wanted:
            if hard != resource.RLIM_INFINITY and hard < wanted:
                self.skipTest("no more than %d open files are allowed" % hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        server = self.serve()
        host, port = server.address()
        connected = 0
        all_connected = asyncio.Event()

        async def client(number):
            nonlocal connected
            reader, writer = await asyncio.open_connection(host, port)
            connected += 1
            if connected == 1000:
                all_connected.set()
            await all_connected.wait()
            for i in range(3):
                line = b"%d of %d\n" % (i, number)
                writer.write(line)
                self.assertEqual(await reader.readline(), line)
            writer.close()

        async def main():
            await asyncio.gather(*(client(i) for i in range(1000)))

        asyncio.run(main())

        self.assertRegex(self.stop(server), r"^done: 1000 connections, \d+ bytes, 0 connections cut off$")

    def test_half_close(self):
        server = self.serve()
        data = os.urandom(1 << 20)

        async def main():
            reader, writer = await asyncio.open_connection(*server.address())
            writer.write(data)
            writer.write_eof()
            return await reader.read()

        self.assertEqual(asyncio.run(main()), data)

    def test_resets(self):
        server = self.serve()
        for i in range(50):
            client = connect(server)
            if i % 2:
                client.sendall(b"x" * 100_000)  # The answer is on its way.
            reset(client)

        with connect(server) as client:
            self.assertEqual(ask(client, b"still there?"), b"still there?")
        self.assertTrue(self.stop(server).startswith("done: 51 connections"))

    def test_a_slow_reader_holds_up_only_itself(self):
        server = self.serve()
        slow = connect(server)
        slow.setblocking(False)
        sent = 0
        try:
            while sent < 1 << 28:  # More than all buffers in between.
                sent += slow.send(b"0123456789abcdef" * 1024)
        except BlockingIOError:
            pass
        self.assertLess(sent, 1 << 28, "the server took everything, and must keep it somewhere")

        with connect(server) as other:
            for _ in range(100):
                self.assertEqual(ask(other, b"quick"), b"quick")

        slow.settimeout(program.PATIENCE)
        slow.shutdown(socket.SHUT_WR)
        self.assertEqual(len(receive_all(slow)), sent)
        slow.close()

    def test_signals_end_it_with_clients_connected(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                server = self.serve("--grace=100")
                clients = [connect(server) for _ in range(3)]
                for client in clients:
                    self.assertEqual(ask(client, b"hi"), b"hi")

                last = self.stop(server, number)

                self.assertIn("shutting down, 3 connections are open", server.lines)
                self.assertEqual(last, "done: 3 connections, 6 bytes, 3 connections cut off")
                for client in clients:
                    self.assertEqual(client.recv(1), b"")
                    client.close()

    def test_connections_may_finish(self):
        server = self.serve("--grace=3600000")
        client = connect(server)
        self.assertEqual(ask(client, b"one"), b"one")
        address = server.address()

        server.signal()
        server.wait_for("shutting down")
        with self.assertRaises(OSError):
            # Until it has closed its door, a moment after it has said so.
            while True:
                socket.create_connection(address, timeout=program.PATIENCE).close()
        self.assertEqual(ask(client, b"two"), b"two")
        client.shutdown(socket.SHUT_WR)

        self.assertEqual(receive_all(client), b"")
        self.assertEqual(server.wait(), 0)
        self.assertTrue(server.lines[-1].endswith(", 0 connections cut off"), server.lines[-1])
        client.close()

    def test_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest("no IPv6 here: %s" % error)
        server = self.serve("--host=::1")

        self.assertEqual(server.address()[0], "::1")
        with connect(server) as client:
            self.assertEqual(ask(client, b"six"), b"six")

    def test_nc_and_socat(self):
        server = self.serve()
        host, port = server.address()
        commands = [["nc", "-N", host, str(port)], ["socat", "-t10", "-", "TCP:%s:%d" % (host, port)]]
        found = [command for command in commands if shutil.which(command[0])]
        if not found:
            self.skipTest("neither nc nor socat is installed")
        for command in found:
            done = subprocess.run(
                command, input="from %s\n" % command[0], capture_output=True, text=True, timeout=program.PATIENCE
            )
            self.assertEqual(done.stdout, "from %s\n" % command[0], done.stderr)

    # -- What a user may get wrong.

    def fails(self, *flags):
        """Its complaint."""
        done = program.run("echo_server", *flags)
        self.assertEqual((done.code, done.out), (2, ""))
        self.assertRegex(done.err, r"^echo_server: [^\n]+\n$")
        return done.err

    def test_a_port_in_use(self):
        host, port = self.serve().address()

        self.assertIn("%s:%d" % (host, port), self.fails("--port=%d" % port))

    def test_wrong_flags(self):
        self.assertIn("--prot", self.fails("--prot=1"))
        self.assertIn("--port=65536", self.fails("--port=65536"))
        self.assertIn("--port=-1", self.fails("--port", "-1"))
        self.assertIn("--port=http", self.fails("--port=http"))
        self.assertIn("--port", self.fails("--port"))
        self.assertIn("7777", self.fails("7777"))

    def test_an_address_that_is_none(self):
        for host in ("300.1.2.3", "1::2::3", "no such host"):
            self.assertIn(host, self.fails("--port=0", "--host=" + host))

    def test_an_address_of_somebody_else(self):
        self.assertIn("192.0.2.1", self.fails("--port=0", "--host=192.0.2.1"))

    def test_a_poller_that_does_not_exist(self):
        complaint = self.fails("--poller=magic")

        self.assertIn("magic", complaint)
        if sys.platform == "linux":
            self.assertIn("epoll", complaint)

    def test_help(self):
        done = program.run("echo_server", "--help")

        self.assertEqual(done.code, 0)
        for flag in ("--host", "--port", "--poller", "--grace"):
            self.assertIn(flag, done.out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
