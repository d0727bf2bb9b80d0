# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Tests of weft.bzl, run whenever //tools is loaded."""

load(":weft.bzl", "POLLERS", "order_error", "poller_error")

def _expect(package, dep, fine, also = []):
    error = order_error(package, "name", [":near", dep], also)
    if fine and error:
        fail("{} -> {}: refused, but it is in order: {}".format(package, dep, error))
    if not fine and not error:
        fail("{} -> {}: not refused".format(package, dep))
    for part in [] if fine else ["//{}:name".format(package), dep, "core/ < timer/ < poller/"]:
        if part not in error:
            fail("{} -> {}: the message does not name {}: {}".format(package, dep, part, error))

def weft_bzl_test():
    """Fails the load if the order of the folders is not kept."""
    _expect("core", "//core:task", True)
    _expect("core", "@com_google_absl//absl/time", True)
    _expect("core", "//timer:timer_wheel", False)
    _expect("core", "@weft//timer:timer_wheel", False)
    _expect("timer", "//core:clock", True)
    _expect("timer", "//poller", False)
    _expect("poller", "//timer:timer_wheel", False)
    _expect("executor", "//poller:poller", False)
    _expect("sync", "//core:future", True)
    _expect("sync", "//executor:executor", False)
    _expect("loop", "//sync:event", True)
    _expect("loop", "//net:stream", False)
    _expect("net", "//loop:event_loop", True)
    _expect("net", "//:weft", False)
    _expect("", "//net:stream", True)
    _expect("", "//testing:weft_test", False)
    _expect("testing", "//:weft", True)
    _expect("testing/oracle", "//testing:weft_test", True)
    _expect("testing/oracle", "//examples:tour", False)
    _expect("examples", "//testing:weft_test", True)
    _expect("bench", "//examples:echo", True)

    # A test may use testing/, wherever it lives; a tool may use anything.
    _expect("core", "//testing/oracle:player", True, also = ["testing"])
    _expect("core", "//loop:event_loop", False, also = ["testing"])
    _expect("tools", "//bench:report", True)

    if poller_error("net", "name", POLLERS):
        fail("a poller of ours was refused")
    if "nosuch" not in (poller_error("net", "name", ["poll", "nosuch"]) or ""):
        fail("an unknown poller was not refused by its name")

    if not order_error("core", "name", select({"//conditions:default": []})):
        fail("a select() in deps was not refused")
