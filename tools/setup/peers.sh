#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Installs the programs that tests talk to, and the libraries that //bench:compare is run
# against. Called by .ci/run: a test whose peer is
# not there says so and skips that part.

: "${WEFT_ROOT:=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${WEFT_CACHE:=${XDG_CACHE_HOME:-${HOME:=$(echo ~)}/.cache}/weft}"
cd "$WEFT_ROOT"
source tools/setup/common.sh

lock
install_if_possible "for the tests with other people's programs" \
  curl netcat-openbsd openssl redis-tools socat wrk
install_if_possible "for //bench:compare" \
  libboost1.81-dev libev-dev libevent-dev liburing-dev libuv1-dev python3-uvloop valgrind
