#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""weft and its peers: the table, the page, and that everybody does all of the work."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import charts
import compare

PROGRAMS = sys.argv[1:]


def run(*arguments):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare.py")
    return subprocess.run([sys.executable, script, *PROGRAMS, *arguments], capture_output=True, text=True)


class FiguresTest(unittest.TestCase):
    POST, RATE = compare.LOCAL[0], compare.measure.NETWORK[1]
    RUNS = {
        POST.name: {
            "weft": [{"ns": v} for v in (10.0, 8.0, 90.0)],
            "raw": [{"ns": v} for v in (4.0, 4.0, 5.0)],
            "libev": [{"ns": v} for v in (20.0, 16.0, 21.0)],
            "libuv": [{"ns": v} for v in (80.0, 80.0, 80.0)],
        },
        RATE.name: {"weft": [{"rate": 100.0, "calls": -1}], "libev": [{"rate": 90.0}], "libuv": [{"rate": 200.0}]},
    }
    PEERS = ["weft", "raw", "libev", "libuv"]

    def rows(self):
        return compare.rows_of([self.POST, self.RATE], self.RUNS)

    def test_a_ratio_is_one_of_medians_to_the_best_peer_and_to_raw(self):
        line = compare.as_text(self.rows(), self.PEERS).splitlines()[1]

        self.assertEqual(line.split()[-5:], ["0.50x", "(best", "0.50x)", "libev", "2.50x"])

    def test_of_a_rate_the_best_is_the_most(self):
        line = compare.as_text(self.rows(), self.PEERS).splitlines()[2]

        self.assertEqual(line.split()[-4:], ["0.50x", "(best", "0.50x)", "libuv"])

    def test_what_was_not_counted_is_no_row(self):
        self.assertEqual([row[0] for row in self.rows()], ["post, chain", self.RATE.name + ": requests a second"])

    def test_who_is_slow_does_fewer_operations_and_as_many_timers(self):
        slow = compare.Peer("slow", share=0.05)
        options = types.SimpleNamespace(share=0.5)
        done = {work.name: compare.operations(work, slow, options) for work in compare.LOCAL}

        self.assertEqual(done["post, chain"], 50_000)
        self.assertEqual(done["start and stop of a loop"], 1_000)
        self.assertEqual(done["timers, 1,000,000"], 1_000_000)

    def test_the_page_has_a_bar_for_each(self):
        page = charts.page(self.rows(), self.PEERS, {"commit": "<none>"}, ["a remark"])

        self.assertEqual(page.count("<rect"), 7)
        self.assertIn("&lt;none&gt;", page)
        self.assertIn("a remark", page)
        self.assertNotIn("http", page)


class RunTest(unittest.TestCase):
    def test_everybody_does_all_that_it_says_it_can(self):
        # In a debug build or under a sanitizer too: that is refused only for figures.
        for peer in compare.peers_of(PROGRAMS[1:]):
            for work in compare.LOCAL:
                if work.work not in peer.works:
                    continue
                count = 1_000 if work.count >= 1_000 else 20
                figures = compare.measure.figures_of(peer.local + [work.work, str(count)], None)
                for key, *_ in work.figures:
                    if key != "ns_allocs":
                        self.assertIn(key, figures, (peer.name, work.name))
                if "early" in figures and compare.is_ours(peer.name):
                    self.assertEqual(figures["early"], 0)

    def test_all_servers_echo(self):
        machine = compare.measure.Machine()
        echo = [work for work in compare.measure.NETWORK if work.name in ("echo 16 KiB, 64", "accept, request, reset")]
        for peer in compare.peers_of(PROGRAMS[1:]):
            for work in echo if peer.server else []:
                try:
                    figures, _ = compare.measure.serve(peer.server, PROGRAMS[0], work, 0.1, machine)
                except RuntimeError as error:
                    if "io_uring" in peer.name:  # Not every kernel has it.
                        print("not run on this machine: %s: %s" % (peer.name, error))
                        continue
                    raise
                self.assertGreater(figures["rate"], 0, peer.name)
                self.assertGreater(figures["cpu_us"], 0, peer.name)

    def test_a_run_writes_a_table_and_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page, figures = os.path.join(folder, "page.html"), os.path.join(folder, "figures.json")
            done = run("--quick", "--only=start and stop", "--peers=weft,raw,asyncio", "--html=" + page, "--json=" + figures)

            if "built without -c opt" in done.stdout:
                self.assertEqual(done.returncode, 1)
                return
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("start and stop of a loop", done.stdout)
            with open(page) as file:
                self.assertIn("<svg", file.read())
            with open(figures) as file:
                self.assertIn("weft", json.load(file)["runs"]["start and stop of a loop"])

    def test_who_is_not_there_is_named(self):
        done = run("--peers=nosuch")

        self.assertEqual(done.returncode, 2)
        self.assertIn("nosuch", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
