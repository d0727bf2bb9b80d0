#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Guests of chat_server."""

import os
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


class Guest:
    def __init__(self, address, name):
        self.socket = socket.create_connection(address, timeout=program.PATIENCE)
        self.lines = self.socket.makefile("r", newline="\n")
        assert self.read() == "* what is your name?"
        self.say(name)
        self.welcome = self.read()

    def say(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def read(self):
        """The next line; None at the end."""
        line = self.lines.readline()
        return line[:-1] if line else None

    def leave(self):
        self.lines.close()
        self.socket.close()


class ChatServerTest(unittest.TestCase):
    def setUp(self):
        self.server = program.Program("chat_server", "--port=0")
        self.addCleanup(self.server.__exit__)

    def enter(self, name):
        guest = Guest(self.server.address(), name)
        self.addCleanup(guest.leave)
        return guest

    def test_everybody_reads_it_but_who_said_it(self):
        anna = self.enter("anna")
        bert = self.enter("bert")
        cleo = self.enter("cleo\r")  # As telnet ends a line.

        anna.say("hello")
        bert.say("hi, anna")

        self.assertEqual(anna.welcome, "* hello anna, there are 0 others here")
        self.assertEqual(cleo.welcome, "* hello cleo, there are 2 others here")
        self.assertEqual([anna.read() for _ in range(3)], ["* bert joined", "* cleo joined", "bert: hi, anna"])
        self.assertEqual([bert.read() for _ in range(2)], ["* cleo joined", "anna: hello"])
        self.assertEqual({cleo.read() for _ in range(2)}, {"anna: hello", "bert: hi, anna"})

    def test_who_leaves_is_missed(self):
        anna = self.enter("anna")
        bert = self.enter("bert")

        bert.leave()

        self.assertEqual([anna.read() for _ in range(2)], ["* bert joined", "* bert left"])

    def test_a_line_that_is_too_long(self):
        anna = self.enter("anna")
        bert = self.enter("bert")

        bert.say("x" * 300_000)
        while bert.read() != "* nobody reads such a long line":
            pass
        bert.say("sorry")

        self.assertEqual(anna.read(), "* bert joined")
        lines = [anna.read()]
        while lines[-1] != "bert: sorry":  # The end of the long one may come as a line.
            lines.append(anna.read())

    def test_a_guest_who_does_not_read_is_shown_out(self):
        anna = self.enter("anna")
        slow = self.enter("slow")
        bert = self.enter("bert")
        self.assertEqual([anna.read(), anna.read()], ["* slow joined", "* bert joined"])

        # slow reads nothing. anna does, and gets every line in time.
        line = "y" * 10_000
        count = 0
        while True:
            bert.say(line)
            count += 1
            said = anna.read()
            if said == "* slow left":
                break
            self.assertEqual(said, "bert: " + line)
            self.assertLess(count, 20_000, "slow is never shown out")
        self.assertEqual(anna.read(), "bert: " + line)

    def test_the_end(self):
        guests = [self.enter(name) for name in ("anna", "bert")]
        self.assertEqual(guests[0].read(), "* bert joined")

        self.server.signal(signal.SIGTERM)

        for guest in guests:
            self.assertEqual(guest.read(), "* we are closing, good night")
            while guest.read() is not None:  # Others leave, and then it is over.
                pass
        self.assertEqual((self.server.wait(), self.server.errors), (0, []))
        self.assertEqual(self.server.lines[-2:], ["shutting down, 2 guests are here", "done"])

    def test_wrong_flags(self):
        host, port = self.server.address()
        for flag, named in (
            ("--prot=1", "--prot"),
            ("--port=99999", "99999"),
            ("--poller=magic", "magic"),
            ("--port=%d" % port, "%s:%d" % (host, port)),
        ):
            done = program.run("chat_server", flag)

            self.assertEqual((done.code, done.out), (2, ""), flag)
            self.assertIn(named, done.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
