#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs a program for Windows under Wine: test --run_under of --config=windows.

set -euo pipefail

export WINEDEBUG=${WINEDEBUG:--all} WINEARCH=win64
# No .NET, no browser, no menu entries; and no debugger, which would keep a program
# that has crashed.
export WINEDLLOVERRIDES="mscoree=;mshtml=;winemenubuilder.exe=d;winedbg.exe=d"
unset DISPLAY

# A fresh Windows takes seconds to make: once, for all.
template=${WEFT_WINE_TEMPLATE:-/tmp/weft-wine-$(id -u)}
if [[ ! -e $template/.ready ]]; then
  exec 9>"$template.lock"
  flock 9
  if [[ ! -e $template/.ready ]]; then
    rm -rf "$template"
    WINEPREFIX=$template wineboot -i >/dev/null 2>&1
    WINEPREFIX=$template wineserver -w
    touch "$template/.ready"
  fi
  exec 9>&-
fi

# Two sandboxes must not share one: each has its own wineserver. Links, not copies.
own=$(mktemp -d /tmp/weft-wine.XXXXXX)
# The wineserver outlives its programs by some seconds, and may still write there.
remove_own() {
  for _ in {1..50}; do
    if rm -rf "$own" 2>/dev/null; then return; fi
    sleep 0.1
  done
}
trap remove_own EXIT
export WINEPREFIX=$own/prefix
cp -al "$template" "$WINEPREFIX"

# GoogleTest takes a path without the letter of a drive for a relative one.
for variable in TEST_SRCDIR TEST_TMPDIR TEST_UNDECLARED_OUTPUTS_DIR XML_OUTPUT_FILE; do
  if [[ -n ${!variable:-} ]]; then
    path=${!variable}
    export "$variable=Z:${path//\//\\}"
  fi
done
wine "$@"
