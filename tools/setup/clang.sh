#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes ready what --config=clang, asan, tsan and fuzz need. Called by tools/bazel.

cd "$WEFT_ROOT"
source tools/setup/common.sh

# Not Debian's, but there.
if type -P clang-16 >/dev/null && type -P ld.lld >/dev/null; then exit; fi

lock
install_packages "for --config=clang, asan, tsan and fuzz" clang-16 libclang-rt-16-dev lld-16 llvm-16
