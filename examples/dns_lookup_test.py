#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""dns_lookup against what Python's socket module finds. There may be no network: only names of
the hosts file, and one that cannot exist."""

import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program


def addresses(name, family=socket.AF_UNSPEC):
    found = []
    for entry in socket.getaddrinfo(name, 0, family, socket.SOCK_STREAM):
        if entry[4][0] not in found:
            found.append(entry[4][0])
    return found


class DnsLookupTest(unittest.TestCase):
    def test_a_name(self):
        result = program.run("dns_lookup", "localhost")
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(result.lines, ["localhost: " + " ".join(addresses("localhost"))])

    def test_only_one_family(self):
        result = program.run("dns_lookup", "--ipv4", "localhost")
        self.assertEqual(result.lines, ["localhost: " + " ".join(addresses("localhost", socket.AF_INET))])

    def test_an_address(self):
        result = program.run("dns_lookup", "127.0.0.1")
        self.assertEqual(result.lines, ["127.0.0.1: " + socket.getnameinfo(("127.0.0.1", 0), 0)[0]])

    def test_many_in_their_order(self):
        names = ["127.0.0.1", "localhost"] * 20
        result = program.run("dns_lookup", *names)
        self.assertEqual([line.split(":")[0] for line in result.lines], names)

    def test_what_is_not_found(self):
        result = program.run("dns_lookup", "no such name", "localhost")
        self.assertEqual(result.code, 1)
        self.assertEqual(len(result.lines), 1)
        self.assertIn('resolve "no such name": ', result.err)

    def test_usage(self):
        result = program.run("dns_lookup")
        self.assertEqual(result.code, 2)
        self.assertIn("nothing to look up", result.err)


if __name__ == "__main__":
    unittest.main()
