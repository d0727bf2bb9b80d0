#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""redis_mini and its clients: raw sockets, and the tools of Redis if they are installed."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

CLI = shutil.which("redis-cli")
BENCHMARK = shutil.which("redis-benchmark")


class Error(Exception):
    pass


class Client:
    """Speaks RESP2."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=program.PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.socket.makefile("rb")

    @staticmethod
    def request(*arguments):
        parts = [argument if isinstance(argument, bytes) else str(argument).encode() for argument in arguments]
        return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        """The next answer; None for one that is nothing, EOFError at the end."""
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(line)
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return Error(rest.decode())
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            return self.input.read(int(rest) + 2)[:-2]
        if int(rest) < 0:
            return None
        return [self.read() for _ in range(int(rest))]

    def __call__(self, *arguments):
        self.send(self.request(*arguments))
        return self.read()

    def close(self):
        self.input.close()
        self.socket.close()


class RedisMiniTest(unittest.TestCase):
    def setUp(self):
        self.server = program.Program("redis_mini", "--port=0")
        self.addCleanup(self.server.__exit__)

    def client(self):
        client = Client(self.server.address())
        self.addCleanup(client.close)
        return client

    def assert_error(self, answer, text):
        self.assertIsInstance(answer, Error)
        self.assertEqual(str(answer), text)

    def test_strings(self):
        redis = self.client()
        value = bytes(range(256))
        self.assertEqual(redis("PING"), "PONG")
        self.assertEqual(redis("ping", "a b"), b"a b")
        self.assertEqual(redis("ECHO", value), value)
        self.assertIsNone(redis("GET", "key"))
        self.assertEqual(redis("SET", "key", value), "OK")
        self.assertEqual(redis("GET", "key"), value)
        self.assertIsNone(redis("SET", "key", "other", "NX"))
        self.assertIsNone(redis("SET", "none", "other", "XX"))
        self.assertEqual(redis("SET", "key", "other", "xx"), "OK")
        self.assertEqual(redis("SET", "none", "one", "nx"), "OK")
        self.assertEqual(redis("MSET", "a", 1, "b", 2), "OK")
        self.assertEqual(redis("MGET", "a", "missing", "b", "key"), [b"1", None, b"2", b"other"])
        self.assertEqual(redis("EXISTS", "a", "a", "missing"), 2)
        self.assertEqual(redis("DBSIZE"), 4)
        self.assertEqual(redis("DEL", "a", "missing", "b"), 2)
        self.assertEqual(redis("FLUSHALL"), "OK")
        self.assertEqual(redis("DBSIZE"), 0)

    def test_numbers(self):
        redis = self.client()
        self.assertEqual(redis("INCR", "n"), 1)
        self.assertEqual(redis("INCRBY", "n", 41), 42)
        self.assertEqual(redis("DECR", "n"), 41)
        self.assertEqual(redis("DECRBY", "n", -1), 42)
        self.assertEqual(redis("GET", "n"), b"42")
        redis("SET", "n", 2**63 - 1)
        self.assert_error(redis("INCR", "n"), "ERR increment or decrement would overflow")
        self.assert_error(redis("DECRBY", "n", -(2**63)), "ERR decrement would overflow")
        redis("SET", "n", " 1")
        self.assert_error(redis("INCR", "n"), "ERR value is not an integer or out of range")

    def test_keys_that_expire(self):
        redis = self.client()
        redis("SET", "forever", 1)
        redis("SET", "later", 1, "EX", 100)
        redis("SET", "soon", 1, "PX", 20)
        self.assertEqual([redis("TTL", key) for key in ("none", "forever", "later")], [-2, -1, 100])
        self.assertEqual(redis("EXPIRE", "forever", 200), 1)
        self.assertEqual(redis("TTL", "forever"), 200)
        self.assertEqual(redis("EXPIRE", "none", 200), 0)
        self.assertEqual(redis("EXPIRE", "later", 0), 1)
        self.assertIsNone(redis("GET", "later"))
        redis("SET", "forever", 2)
        self.assertEqual(redis("TTL", "forever"), -1, "SET takes the end away")

        late = time.monotonic() + program.PATIENCE
        while redis("DBSIZE") != 1:  # It goes by itself, without being asked for.
            self.assertLess(time.monotonic(), late)
        self.assertIsNone(redis("GET", "soon"))

    def test_lists_sets_and_hashes(self):
        redis = self.client()
        self.assertEqual(redis("RPUSH", "list", "c", "d"), 2)
        self.assertEqual(redis("LPUSH", "list", "b", "a"), 4)
        self.assertEqual(redis("LRANGE", "list", 0, -1), [b"a", b"b", b"c", b"d"])
        self.assertEqual(redis("LRANGE", "list", -3, 1), [b"b"])
        self.assertEqual(redis("LRANGE", "list", 2, 1), [])
        self.assertEqual(redis("LRANGE", "none", 0, 10), [])
        self.assertEqual([redis("LPOP", "list"), redis("RPOP", "list")], [b"a", b"d"])
        self.assertEqual(redis("LPOP", "list", 5), [b"b", b"c"])
        self.assertEqual(redis("EXISTS", "list"), 0)
        self.assertIsNone(redis("LPOP", "list"))

        self.assertEqual(redis("SADD", "set", "a", "b", "a", "c"), 3)
        self.assertEqual(redis("SADD", "set", "a", "d"), 1)
        popped = {redis("SPOP", "set")} | set(redis("SPOP", "set", 2)) | {redis("SPOP", "set")}
        self.assertEqual(popped, {b"a", b"b", b"c", b"d"})
        self.assertIsNone(redis("SPOP", "set"))

        self.assertEqual(redis("HSET", "hash", "f", 1, "g", 2), 2)
        self.assertEqual(redis("HSET", "hash", "f", 3), 0)
        self.assertEqual([redis("HGET", "hash", field) for field in "fgh"], [b"3", b"2", None])

    def test_errors(self):
        redis = self.client()
        redis("SET", "text", "x")
        wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value"
        for arguments in (["LPUSH", "text", "a"], ["SADD", "text", "a"], ["HGET", "text", "f"], ["LRANGE", "text", 0, 1]):
            self.assert_error(redis(*arguments), wrong_type)
        self.assert_error(redis("GET"), "ERR wrong number of arguments for 'get' command")
        self.assert_error(redis("MSET", "a", 1, "b"), "ERR wrong number of arguments for 'mset' command")
        self.assert_error(redis("SET", "a", 1, "NX", "XX"), "ERR syntax error")
        self.assert_error(redis("SET", "a", 1, "EX", 0), "ERR invalid expire time in 'set' command")
        self.assert_error(redis("SET", "a", 1, "EX", "x"), "ERR value is not an integer or out of range")
        self.assert_error(redis("NO", "a\r\n", "b"), "ERR unknown command 'NO', with args beginning with: 'a  ' 'b' ")
        self.assertEqual(redis("PING"), "PONG")

    def test_what_is_no_request(self):
        for data, text in (
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*2000000\r\n", "invalid multibulk length"),
            (b"*1\r\n$999999999999\r\n", "invalid bulk length"),
            (b"x" * 66_000, "too big inline request"),
        ):
            redis = self.client()
            redis.send(b"PING\r\n" + data)
            self.assertEqual(redis.read(), "PONG")
            self.assert_error(redis.read(), "ERR Protocol error: " + text)
            # And then it is over; what the server has not read makes that a reset.
            with self.assertRaises((EOFError, ConnectionResetError)):
                redis.read()

    def test_inline_and_in_pieces(self):
        redis = self.client()
        redis.send(b"set key 'a b'\r\n\r\nget key\n")
        self.assertEqual([redis.read(), redis.read()], ["OK", b"a b"])
        for byte in Client.request("SET", "key", b"\r\n") + Client.request("GET", "key"):
            redis.send(bytes([byte]))
        self.assertEqual([redis.read(), redis.read()], ["OK", b"\r\n"])

    def test_a_pipeline_is_answered_in_one_piece(self):
        redis = self.client()
        redis.send(b"".join(Client.request("INCR", "n") for _ in range(100)))
        answers = redis.socket.recv(1 << 16)
        self.assertEqual(answers, b"".join(b":%d\r\n" % (i + 1) for i in range(100)))

    def test_large_values_and_a_reader_that_is_late(self):
        redis = self.client()
        value = os.urandom(5_000_000)
        redis.send(Client.request("SET", "big", value) + Client.request("GET", "big") * 20)
        other = self.client()
        self.assertEqual(other("PING"), "PONG")  # Nobody else waits.
        self.assertEqual(redis.read(), "OK")
        for _ in range(20):
            self.assertEqual(redis.read(), value)

    def test_publishing(self):
        listener, speaker = self.client(), self.client()
        self.assertEqual(speaker("PUBLISH", "news", "early"), 0)
        self.assertEqual(listener("SUBSCRIBE", "news", "sport"), [b"subscribe", b"news", 1])
        self.assertEqual(listener.read(), [b"subscribe", b"sport", 2])
        self.assertEqual(speaker("PUBLISH", "news", "hello"), 1)
        self.assertEqual(listener.read(), [b"message", b"news", b"hello"])
        self.assertEqual(listener("PING"), [b"pong", b""])
        self.assertIn("only (P|S)SUBSCRIBE", str(listener("GET", "a")))
        self.assertEqual(listener("UNSUBSCRIBE", "news"), [b"unsubscribe", b"news", 1])
        self.assertEqual(speaker("PUBLISH", "news", "hello"), 0)
        self.assertEqual(listener("UNSUBSCRIBE"), [b"unsubscribe", b"sport", 0])
        self.assertEqual(listener("UNSUBSCRIBE"), [b"unsubscribe", None, 0])
        self.assertEqual(listener("PING"), "PONG")

        self.assertEqual(listener("SUBSCRIBE", "news"), [b"subscribe", b"news", 1])
        listener.close()
        late = time.monotonic() + program.PATIENCE
        while speaker("PUBLISH", "news", "hello") != 0:
            self.assertLess(time.monotonic(), late)

    def test_a_subscriber_who_does_not_read_is_cut_off(self):
        slow, listener, speaker = self.client(), self.client(), self.client()
        for client in (slow, listener):
            client("SUBSCRIBE", "news")
        message = b"x" * 1_000_000
        for _ in range(100):
            count = speaker("PUBLISH", "news", message)
            self.assertEqual(listener.read(), [b"message", b"news", message])
            if count == 1:
                return
        self.fail("it is never cut off")

    def test_quit(self):
        redis = self.client()
        redis.send(Client.request("QUIT") + Client.request("PING"))
        self.assertEqual(redis.read(), "OK")
        with self.assertRaises((EOFError, ConnectionResetError)):
            redis.read()

    def test_the_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with program.Program("redis_mini", "--port=0") as server:
                client = Client(server.address())
                self.assertEqual(client("PING"), "PONG")
                server.signal(number)
                self.assertEqual(client.input.read(), b"")
                client.close()
                self.assertEqual((server.wait(), server.errors), (0, []))
                self.assertEqual(server.lines[-2:], ["shutting down, 1 clients are here", "done"])

    def test_wrong_flags(self):
        for flag, named in (("--prot=1", "--prot"), ("--port=99999", "99999"), ("--poller=magic", "magic")):
            done = program.run("redis_mini", flag)
            self.assertEqual((done.code, done.out), (2, ""), flag)
            self.assertIn(named, done.err)

    def cli(self, *arguments, **options):
        host, port = self.server.address()
        command = [CLI, "-h", host, "-p", str(port), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=program.PATIENCE, **options).stdout

    @unittest.skipIf(CLI is None, "redis-cli is not installed (Debian: redis-tools)")
    def test_redis_cli(self):
        self.assertEqual(self.cli("set", "greeting", "hello world"), "OK\n")
        self.assertEqual(self.cli("get", "greeting"), "hello world\n")
        self.assertEqual(self.cli("--no-raw", "rpush", "list", "a", "b"), "(integer) 2\n")
        self.assertEqual(self.cli("--no-raw", "lrange", "list", "0", "-1"), '1) "a"\n2) "b"\n')
        self.assertIn("unknown command", self.cli("nonsense"))
        self.assertIn("redis_mini", self.cli("info"))
        self.assertEqual(self.cli(input="incr n\nincr n\nget n\n"), "1\n2\n2\n")
        pipe = b"".join(Client.request("SET", "key%d" % i, i) for i in range(1000)).decode()
        self.assertIn("errors: 0, replies: 1000", self.cli("--pipe", input=pipe))

    @unittest.skipIf(BENCHMARK is None, "redis-benchmark is not installed (Debian: redis-tools)")
    def test_redis_benchmark(self):
        host, port = self.server.address()
        tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,lrange,mset"
        for extra in ([], ["-P", "16"], ["-r", "100", "-P", "5"]):
            command = [BENCHMARK, "-h", host, "-p", str(port), "-q", "-n", "1000", "-c", "10", "-t", tests, *extra]
            done = subprocess.run(command, capture_output=True, text=True, timeout=program.PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertGreaterEqual(done.stdout.count("requests per second"), 17, done.stdout)
            self.assertNotIn("Error", done.stdout + done.stderr)
            self.assertNotIn("WARNING", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
