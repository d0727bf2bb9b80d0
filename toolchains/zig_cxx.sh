#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# zig as a C++ compiler and linker for Bazel. It has no frameworks of Apple's: of
# the dependencies only Abseil asks for one, which toolchains/darwin_stub stands in
# for. WEFT_ZIG is the program: tools/setup/macos.sh.

set -euo pipefail
export ZIG_GLOBAL_CACHE_DIR=${ZIG_GLOBAL_CACHE_DIR:-/tmp/weft-zig-cache-$(id -u)}
export ZIG_LOCAL_CACHE_DIR=$ZIG_GLOBAL_CACHE_DIR

all=()
for argument in "$@"; do
  if [[ $argument == @* ]]; then
    mapfile -t -O "${#all[@]}" all <"${argument#@}"
  else
    all+=("$argument")
  fi
done
kept=() skip=
for argument in "${all[@]}"; do
  if [[ -n $skip ]]; then
    skip=
  elif [[ $argument == -framework ]]; then
    skip=1
  else
    kept+=("$argument")
  fi
done
exec "${WEFT_ZIG:?is the path of zig}" c++ "${kept[@]}"
