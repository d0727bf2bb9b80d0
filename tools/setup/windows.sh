#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes ready what --config=windows needs: MinGW-w64 to build, Wine to run. Called
# by tools/bazel.

cd "$WEFT_ROOT"
source tools/setup/common.sh

if [[ -x /usr/bin/x86_64-w64-mingw32-g++-posix ]] && type -P wineboot >/dev/null; then exit; fi

lock
install_packages "for --config=windows" g++-mingw-w64-x86-64-posix wine wine64
