#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Clients of websocket_push: raw sockets, and node's WebSocket if there is one."""

import base64
import hashlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
NODE = shutil.which("node")


def frame(opcode, payload=b"", last=True, masked=True):
    """As a client sends it."""
    head = bytes([(0x80 if last else 0) | opcode])
    size = len(payload)
    mark = 0x80 if masked else 0
    if size < 126:
        head += bytes([mark | size])
    elif size < 1 << 16:
        head += struct.pack(">BH", mark | 126, size)
    else:
        head += struct.pack(">BQ", mark | 127, size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    whole = int.from_bytes(payload, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + whole.to_bytes(size, "big")


class Connection:
    """One that has sent nothing yet."""

    def __init__(self, address, buffer=None):
        self.socket = socket.socket()
        self.socket.settimeout(program.PATIENCE)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(address)
        self.input = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def head(self):
        """The status line, and the headers by their names in lower case."""
        lines = []
        while True:
            line = self.input.readline()
            if line in (b"\r\n", b""):
                break
            lines.append(line.decode().rstrip("\r\n"))
        return lines[0], dict((name.lower(), value) for name, value in (line.split(": ", 1) for line in lines[1:]))

    def close(self):
        self.input.close()
        self.socket.close()


class WebSocket(Connection):
    """One that has shaken hands."""

    def __init__(self, address, **options):
        super().__init__(address, **options)
        self.key = base64.b64encode(os.urandom(16)).decode()
        self.send(request(self.key))
        self.status, self.headers = self.head()

    def say(self, text):
        self.send(frame(TEXT, text.encode()))

    def read(self):
        """(opcode, payload) of the next frame; None at the end."""
        head = self.input.read(2)
        if len(head) < 2:
            return None
        assert head[0] & 0x70 == 0 and head[1] & 0x80 == 0, head
        size = head[1]
        if size == 126:
            (size,) = struct.unpack(">H", self.input.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self.input.read(8))
        return head[0], self.input.read(size)

    def read_text(self):
        first, payload = self.read()
        assert first == 0x80 | TEXT, (first, payload)
        return payload.decode()

    def read_close(self):
        """(code, reason) of a close, and the end behind it."""
        first, payload = self.read()
        assert first == 0x80 | CLOSE, (first, payload)
        return struct.unpack(">H", payload[:2])[0], payload[2:].decode()


def request(key, target="/socket", **changes):
    headers = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "keep-alive, Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    lines = ["GET %s HTTP/1.1" % target] + ["%s: %s" % pair for pair in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class WebSocketPushTest(unittest.TestCase):
    def serve(self, *flags):
        server = program.Program("websocket_push", "--port=0", *(flags or ["--tick=0"]))
        self.addCleanup(server.__exit__)
        return server

    def connect(self, server, **options):
        client = WebSocket(server.address(), **options)
        self.addCleanup(client.close)
        return client

    def test_the_handshake(self):
        client = self.connect(self.serve())
        accept = hashlib.sha1((client.key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()

        self.assertEqual(client.status, "HTTP/1.1 101 Switching Protocols")
        self.assertEqual(client.headers["sec-websocket-accept"], base64.b64encode(accept).decode())

    def test_plain_http(self):
        server = self.serve()
        key = base64.b64encode(b"x" * 16).decode()
        for data, status in (
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK"),
            (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found"),
            (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "405 Method Not Allowed"),
            (b"GET /socket HTTP/1.1\r\nHost: x\r\n\r\n", "426 Upgrade Required"),
            (request(key, Sec_WebSocket_Version="8"), "426 Upgrade Required"),
            (request("short"), "400 Bad Request"),
            (b"nonsense\r\n\r\n", "400 Bad Request"),
            (b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000, "431 Request Header Fields Too Large"),
        ):
            client = Connection(server.address())
            client.send(data)
            line, headers = client.head()
            self.assertEqual(line, "HTTP/1.1 " + status)
            if status == "200 OK":
                page = client.input.read(int(headers["content-length"])).decode()
                self.assertIn("new WebSocket(", page)
            client.close()

    def test_everybody_reads_what_anybody_says(self):
        server = self.serve()
        clients = [self.connect(server) for _ in range(3)]

        clients[0].say("gr\u00fc\u00df dich")
        clients[1].send(frame(BINARY, bytes(range(256)) * 300))

        for client in clients:
            frames = {client.read(), client.read()}
            self.assertEqual(frames, {(0x81, "gr\u00fc\u00df dich".encode()), (0x82, bytes(range(256)) * 300)})

    def test_fragments_pings_and_bytes_one_by_one(self):
        client = self.connect(self.serve())
        data = frame(TEXT, b"a", last=False) + frame(PING, b"hello") + frame(0, b"\xe2\x82", last=False)
        for byte in data + frame(0, b"\xac"):
            client.send(bytes([byte]))

        self.assertEqual(client.read(), (0x80 | PONG, b"hello"))
        self.assertEqual(client.read_text(), "a\u20ac")

    def test_ticks(self):
        server = self.serve("--tick=1")
        first, second = self.connect(server), self.connect(server)

        for client in (first, second):
            ticks = [int(client.read_text().split()[1]) for _ in range(20)]
            self.assertEqual(ticks, list(range(ticks[0], ticks[0] + 20)))

    def test_what_is_against_the_rules(self):
        server = self.serve("--tick=0", "--max-message=1000")
        for data, code, reason in (
            (frame(TEXT, b"x", masked=False), 1002, "a client masks everything"),
            (frame(3), 1002, "a reserved opcode"),
            (frame(0, b"x"), 1002, "a continuation of no message"),
            (frame(PING, b"x", last=False), 1002, "a control frame in fragments"),
            (frame(CLOSE, b"\x03"), 1002, "a close code of one byte"),
            (frame(TEXT, b"\xff"), 1007, "the text is not UTF-8"),
            (frame(BINARY, b"x" * 1001), 1009, "the message is too big"),
            (frame(TEXT, b"x" * 600, last=False) + frame(0, b"x" * 600), 1009, "the message is too big"),
        ):
            client = self.connect(server)
            client.send(data)
            self.assertEqual(client.read_close(), (code, reason))
            # Whatever else it sends, it reads why, and then the end.
            client.send(b"x" * 100_000)
            self.assertIsNone(client.read())

    def test_closing(self):
        server = self.serve()
        for payload, answer in (
            (b"", 1000),
            (struct.pack(">H", 1000) + b"bye", 1000),
            (struct.pack(">H", 4321), 4321),
        ):
            client = self.connect(server)
            client.send(frame(CLOSE, payload))
            self.assertEqual(client.read_close(), (answer, ""))
            self.assertIsNone(client.read())

    def test_who_leaves_without_a_word_is_nobody_s_problem(self):
        server = self.serve()
        stays, leaves, resets = (self.connect(server) for _ in range(3))
        leaves.close()
        resets.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        resets.close()

        for i in range(100):
            stays.say(str(i))
            self.assertEqual(stays.read_text(), str(i))

    def test_a_client_that_does_not_read_holds_up_nobody(self):
        server = self.serve("--tick=0", "--queue=4")
        slow = self.connect(server, buffer=4096)
        fast = self.connect(server)
        text = "x" * 500_000

        # The kernel keeps some of it, then the queue four; and then it is too slow.
        for _ in range(100):
            fast.say(text)
            self.assertEqual(fast.read_text(), text)
        server.signal(signal.SIGTERM)
        fast.read_close()
        fast.send(frame(CLOSE, b"\x03\xe9"))

        self.assertEqual(server.wait(), 0)
        self.assertEqual(server.lines[-1], "done: 2 clients, 100 messages, 1 too slow")
        slow.close()

    def test_who_hears_much_at_once_is_not_slow(self):
        server = self.serve("--tick=0", "--queue=4")
        clients = [self.connect(server) for _ in range(3)]
        texts = ["%s %d" % ("x" * size, i) for size in (1, 1000) for i in range(300)]

        clients[0].send(b"".join(frame(TEXT, text.encode()) for text in texts))  # In one piece.
        for client in clients:
            self.assertEqual([client.read_text() for _ in texts], texts)

    def test_who_hears_many_at_once_is_not_slow(self):
        server = self.serve("--tick=0", "--queue=4")
        clients = [self.connect(server) for _ in range(50)]
        for i, client in enumerate(clients):
            client.say(str(i))

        for client in clients:
            said = sorted(int(client.read_text()) for _ in clients)
            self.assertEqual(said, list(range(len(clients))))

    def test_who_was_slow_is_told_so(self):
        server = self.serve("--tick=0", "--queue=1", "--closing=600000")
        slow, fast = self.connect(server, buffer=4096), self.connect(server)
        text = "x" * 200_000
        for _ in range(100):
            fast.say(text)
            fast.read_text()

        # It reads what had left before, and then why there is no more.
        while (got := slow.read())[0] == 0x80 | TEXT:
            self.assertEqual(got[1], text.encode())
        self.assertEqual(got, (0x80 | CLOSE, struct.pack(">H", 1008) + b"too slow"))

    def test_silence_is_answered_by_a_ping(self):
        server = self.serve("--tick=0", "--ping=50", "--pong=60000")
        client = self.connect(server)

        for _ in range(3):
            self.assertEqual(client.read(), (0x80 | PING, b""))
            client.send(frame(PONG))

    def test_who_does_not_answer_a_ping_is_shown_out(self):
        server = self.serve("--tick=0", "--ping=50", "--pong=50")
        client = self.connect(server)

        self.assertEqual(client.read(), (0x80 | PING, b""))
        self.assertEqual(client.read_close(), (1008, "no answer to a ping"))
        self.assertIsNone(client.read())

    def test_the_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.serve()
            polite, rude = self.connect(server), self.connect(server)
            server.signal(number)

            self.assertEqual(polite.read_close(), (1001, "the server ends"))
            polite.send(frame(CLOSE, struct.pack(">H", 1001)))
            self.assertIsNone(polite.read())
            self.assertEqual(rude.read_close(), (1001, "the server ends"))
            rude.close()

            self.assertEqual((server.wait(), server.errors), (0, []))
            self.assertEqual(server.lines[-2], "shutting down, 2 clients are here")
            self.assertEqual(server.lines[-1], "done: 2 clients, 0 messages, 0 too slow")

    def test_the_end_does_not_wait_for_ever(self):
        server = self.serve()
        client = self.connect(server)
        server.signal()

        # It never says good-bye.
        self.assertEqual(server.wait(), 0)
        self.assertEqual(client.read_close(), (1001, "the server ends"))

    def test_wrong_flags(self):
        for flag, named in (("--prot=1", "--prot"), ("--queue=0", "--queue"), ("--poller=magic", "magic")):
            done = program.run("websocket_push", flag)
            self.assertEqual((done.code, done.out), (2, ""), flag)
            self.assertIn(named, done.err)

    def test_node(self):
        script = """
            const socket = new WebSocket("ws://%s:%d/socket");
            socket.onopen = () => socket.send("hello from node");
            socket.onmessage = event => {
              console.log(event.data);
              if (event.data !== "hello from node") return;
              socket.onclose = event => console.log(event.code, event.wasClean);
              socket.close(1000);
            };
            socket.onerror = () => console.log("error");
        """
        if NODE is None:
            self.skipTest("node is not installed")
        flag = "--experimental-websocket"  # Of node 20; since 22 it needs none.
        has = "process.exit(typeof WebSocket === 'undefined' ? 1 : 0)"
        for flags in ([], [flag]):
            if subprocess.run([NODE, *flags, "-e", has], capture_output=True).returncode == 0:
                break
        else:
            self.skipTest("this node has no WebSocket")
        server = self.serve()
        done = subprocess.run(
            [NODE, *flags, "-e", script % server.address()], capture_output=True, text=True, timeout=program.PATIENCE
        )
        self.assertEqual(done.stdout.splitlines(), ["hello from node", "1000 true"], done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
