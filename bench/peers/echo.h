// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_BENCH_PEERS_ECHO_H_
#define WEFT_BENCH_PEERS_ECHO_H_

namespace weft::bench {

// What the peers' echo servers, and the raw ones, begin with. Each of them takes what comes
// on a connection, sends it back, and reads no more than it can send.

// A listening socket on a free port of the loopback, non-blocking.
int ListenOnLoopback();

// Its port, as it is.
int PortOf(int listener);

// Tells measure.py the port, and how this was built.
void Announce(int port);

void SetNoDelay(int fd);

}  // namespace weft::bench

#endif  // WEFT_BENCH_PEERS_ECHO_H_
