# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# What the set-up scripts share. Sourced, not run.

set -euo pipefail

trap 'printf "weft setup: %s, line %s: a command failed\n" "$0" "$LINENO" >&2' ERR

# The compiler for macOS: macos.sh.
zig_version=0.14.0-dev.2456

say() { printf 'weft setup: %s\n' "$*" >&2; }

# Says what is missing and how to get it, one line an argument, and gives up.
give_up() {
  printf 'weft setup: cannot go on.\n' >&2
  printf '  %s\n' "$@" >&2
  exit 1
}

# Several clones may set up at once; the second waits for the first.
lock() {
  mkdir -p "$WEFT_CACHE" || give_up "$WEFT_CACHE cannot be created. Set XDG_CACHE_HOME to a folder that can."
  if ! type -P flock >/dev/null; then return; fi
  exec 9>"$WEFT_CACHE/setup.lock"
  if ! flock --nonblock 9; then
    say "another set-up is running, waiting for it"
    flock 9
  fi
}

is_installed() {
  [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

# The same for what one can do without.
install_if_possible() {
  (
    give_up() {
      printf '  %s\n' "$@" >&2
      exit 1
    }
    install_packages "$@"
  ) || say "going on without ${*:2}: what needs it is left out"
}

# Installs those of the packages that are not there yet.
install_packages() {
  local why=$1 missing=() package
  shift
  if ! type -P apt-get >/dev/null; then
    give_up "Missing, $why: $*." "These are Debian 12's names; this machine has no apt-get." \
      "Install them by hand, or install Bazel 7 or newer and a C++20 compiler and run this again."
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    give_up "Missing, $why: ${missing[*]}." "Only root can install packages. Run:" \
      "    sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "installing ${missing[*]} ($why)"
  local log=$WEFT_CACHE/apt.log
  # A source that does not answer matters only if it has what we want.
  apt-get -qq -o DPkg::Lock::Timeout=600 update >"$log" 2>&1 </dev/null || true
  if ! DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 install "${missing[@]}" >>"$log" 2>&1 </dev/null; then
    tail -n 8 "$log" >&2
    give_up "Missing, $why: ${missing[*]}." "apt-get could not install them; its last words are above, all of them in $log." \
      "They are in Debian 12, section main: is there a network, and do the sources in /etc/apt name it?"
  fi
}
