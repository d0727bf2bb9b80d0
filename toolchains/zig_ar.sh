#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# zig as ar for Bazel: zig_cxx.sh.

set -euo pipefail
export ZIG_GLOBAL_CACHE_DIR=${ZIG_GLOBAL_CACHE_DIR:-/tmp/weft-zig-cache-$(id -u)}
export ZIG_LOCAL_CACHE_DIR=$ZIG_GLOBAL_CACHE_DIR
exec "${WEFT_ZIG:?is the path of zig}" ar "$@"
