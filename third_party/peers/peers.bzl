# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Other people's event loops, as the machine has them: what //bench/peers is measured against.

None of weft needs them. Of those that are not there, //bench:compare says so.
"""

load("//third_party/system_library:system_library.bzl", "system_library_rule")

# The repository is @weft_NAME, with the library NAME.
_PEERS = {
    "asio": struct(
        linkopts = [],
        package = "libboost1.81-dev",
        probe = "#include <boost/asio/version.hpp>\nint main(void) { return 0; }\n",
    ),
    "libev": struct(
        linkopts = ["-lev"],
        package = "libev-dev",
        probe = "#include <ev.h>\nint main(void) { return ev_loop_new(0) == 0; }\n",
    ),
    "libevent": struct(
        linkopts = ["-levent", "-levent_pthreads"],
        package = "libevent-dev",
        probe = "#include <event2/event.h>\n#include <event2/thread.h>\n" +
                "int main(void) { return event_base_new() == 0 || evthread_use_pthreads(); }\n",
    ),
    "liburing": struct(
        linkopts = ["-luring"],
        package = "liburing-dev",
        probe = "#include <liburing.h>\nint main(void) { struct io_uring ring; return io_uring_queue_init(8, &ring, 0); }\n",
    ),
    "libuv": struct(
        linkopts = ["-luv"],
        package = "libuv1-dev",
        probe = "#include <uv.h>\nint main(void) { return uv_default_loop() == 0; }\n",
    ),
}

_peer_library = system_library_rule()

def peer_repositories():
    """Declares @weft_asio, @weft_libev, @weft_libevent, @weft_liburing and @weft_libuv."""
    for name, peer in _PEERS.items():
        _peer_library(
            name = "weft_" + name,
            library = name,
            linkopts = peer.linkopts,
            package = peer.package,
            probe = peer.probe,
        )
