#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes ready what tools/check.sh needs. Called by it.

cd "$WEFT_ROOT"
source tools/setup/common.sh

lock
install_packages "for tools/check.sh" clang-format-19 clang-tidy-19 g++ git python3

# buildifier comes from npm; without npm check.sh does without, and says so.
version=8.2.1
if [[ ! -x $WEFT_CACHE/buildifier-$version ]] && type -P npm >/dev/null; then
  say "fetching buildifier $version"
  work=$(mktemp -d "$WEFT_CACHE/npm.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  case $(uname -m) in
    aarch64) platform=linux_arm64 ;;
    *) platform=linux_amd64 ;;
  esac
  if npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$work" \
    "@bazel/buildifier@$version" >"$WEFT_CACHE/npm.log" 2>&1 </dev/null; then
    mv "$work/node_modules/@bazel/buildifier/buildifier-$platform" "$WEFT_CACHE/buildifier-$version"
    chmod +x "$WEFT_CACHE/buildifier-$version"
  else
    say "npm could not fetch it (see $WEFT_CACHE/npm.log)"
  fi
fi
