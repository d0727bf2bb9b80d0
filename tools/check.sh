#!/usr/bin/env bash
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

# The cheap checks: format, lint, rules of the house, coroutine traps, headers.
#
#   tools/check.sh              everything; the two slow ones (headers, clang-tidy)
#                               on what differs from origin/main, or is not committed
#   tools/check.sh --base REV   ... on what differs from REV
#   tools/check.sh --all        ... on every file
#   tools/check.sh --fast       ... not at all
#   tools/check.sh --minutes N  clang-tidy on as many files as N minutes suffice for, those
#                               that were changed last first; the others are counted
#   tools/check.sh --fix        first formats what can be formatted
#   tools/check.sh PATH...      all of them on what is in these folders, or files
#
# One line a check, findings below it as file:line: what to do. Exit code 1 if
# there is a finding.

set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export WEFT_ROOT=$PWD
export WEFT_CACHE=${XDG_CACHE_HOME:-${HOME:=$(echo ~)}/.cache}/weft
export HOME

all= fast= fix= base= minutes= paths=()
while (($#)); do
  case $1 in
    --all) all=1 ;;
    --fast) fast=1 ;;
    --fix) fix=1 ;;
    --base)
      base=${2:?--base needs a revision}
      shift
      ;;
    --minutes)
      minutes=${2:?--minutes needs a number}
      if [[ ! $minutes =~ ^[0-9]+$ ]]; then
        echo "check: --minutes needs a number, and $minutes is none" >&2
        exit 2
      fi
      shift
      ;;
    [!-]*)
      if [[ ! -e $1 ]]; then
        echo "check: there is no $1" >&2
        exit 2
      fi
      paths+=("${1%/}")
      ;;
    *)
      sed -n '5,18s/^# \{0,1\}//p' tools/check.sh >&2
      exit 2
      ;;
  esac
  shift
done

tools/setup/lint.sh
# This also sets up Bazel, and with it the sources of the dependencies.
output_base=$(tools/bazel info output_base 2>/dev/null) || {
  echo "check: tools/bazel does not work; run tools/bazel info to see why" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The files of the tree, committed or not, and those for the slow checks.
mapfile -t files < <(git ls-files -co --exclude-standard -- "${paths[@]}" | while read -r f; do
  if [[ -f $f ]]; then printf '%s\n' "$f"; fi
done)
if [[ -z $base ]]; then
  base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD 2>/dev/null || true)
fi
if [[ -n $all || -z $base ]] || ((${#paths[@]})); then
  changed=("${files[@]}")
else
  mapfile -t changed < <({
    git diff --name-only --diff-filter=d "$base"
    git ls-files -o --exclude-standard
  } | sort -u)
fi
# Prints those of the arguments after -- that match the first (a regex).
matching() {
  local regex=$1 file
  shift
  for file in "$@"; do
    if [[ $file =~ $regex ]]; then printf '%s\n' "$file"; fi
  done
}
mapfile -t cpp < <(matching '\.(h|cc)$' "${files[@]}")
mapfile -t build < <(matching '(^|/)(BUILD|WORKSPACE)$|\.bzl$|^MODULE\.bazel$' "${files[@]}")
# What is for another system cannot be compiled here.
elsewhere='_(windows|bsd|macos)(_test)?\.(h|cc)$|(^|/)(iocp|kqueue)_'
mapfile -t headers < <(matching '\.h$' "${changed[@]}" | grep -vE "$elsewhere" || true)
mapfile -t sources < <(matching '\.cc$' "${changed[@]}" | grep -vE "$elsewhere" || true)

# -- How to compile a file without Bazel: "weft/..." by a link, the dependencies
# where Bazel has them.
ln -s "$PWD" "$work/weft"
flags=(-std=c++20 "-I$work")
# Adds the include folders $3... of a dependency, by its names before and since Bazel 7.
dependency() {
  local path sub
  path=$(sed -n "s/^common --override_repository=$1=//p" .bazelrc.offline)
  if [[ -z $path ]]; then
    path=$(compgen -G "$output_base/external/$1" || compgen -G "$output_base/external/$2[~+]*" || true)
  fi
  for sub in "${@:3}"; do flags+=(-isystem "${path%%$'\n'*}/$sub"); done
}
dependency com_google_absl abseil-cpp .
dependency com_google_googletest googletest googletest/include googlemock/include
dependency com_github_google_benchmark google_benchmark include
dependency weft_llhttp llhttp include

passed=0 failed=0 skipped=0
# Runs a check: its name, how many files it looks at, and a command that prints findings.
check() {
  local name=$1 count=$2 start=$SECONDS
  shift 2
  if ((count == 0)); then
    printf '  %-46s nothing to look at\n' "$name"
    return
  fi
  if "$@" >"$work/out" 2>&1; then
    printf '  %-46s ok      %4d files %3d s\n' "$name" "$count" $((SECONDS - start))
    passed=$((passed + 1))
  else
    printf '  %-46s FAILED  %4d files %3d s\n' "$name" "$count" $((SECONDS - start))
    sed 's/^/      /' "$work/out"
    failed=$((failed + 1))
  fi
}

# -- The checks

format() {
  local file line bad=0
  while IFS=: read -r file line _; do
    printf '%s:%s: not as clang-format has it: tools/check.sh --fix\n' "$file" "$line"
    bad=1
  done < <(clang-format-19 --dry-run "${cpp[@]}" 2>&1 | grep -E '^[^ ].*: warning:' | sort -t: -u -k1,1 || true)
  return $bad
}

buildifier=$WEFT_CACHE/buildifier-8.2.1
# What Bazel 4 can load from nowhere.
warnings=-native-cc-toolchain,-native-cc-toolchain-suite,-native-cc-common,-native-sh-binary,-native-sh-test
lint_build() { "$buildifier" --mode=check --lint=warn --warnings="$warnings" "${build[@]}"; }

# What was found clean is not looked at again until what it compiles to, its own text or
# .clang-tidy has changed: is_clean STAMP FILE FLAG... says whether, and sets mark, a file to
# touch. Whoever changes how a check is called changes its stamp.
is_clean() {
  local key
  key=$({
    printf '%s\n' "$1"
    cat .clang-tidy "$2"
    g++ "${@:3}" -E -P -x c++ "$2" 2>&1
  } | sha256sum | cut -c1-40)
  mark=$WEFT_CACHE/tidy/$key
  [[ -e $mark ]]
}

# Each header as a translation unit of its own, with all warnings.
compile_alone() {
  local mark
  if is_clean alone "$@"; then return; fi
  if printf '#include "weft/%s"\n' "$1" |
    g++ "${@:2}" -Wall -Wextra -Werror -fsyntax-only -x c++ - >"$work/$$" 2>&1; then
    touch "$mark"
    return
  fi
  sed "s|$work/weft/||g" "$work/$$"
  printf '%s:1: does not stand alone: include or declare what is missing above\n' "$1"
  return 1
}
standalone() {
  printf '%s\0' "${headers[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'compile_alone "$@"' _ {} "${flags[@]}"
}

tidy_one() {
  local out mark
  if [[ -n $tidy_until ]] && ((EPOCHSECONDS >= tidy_until)); then
    printf '%s\n' "$1" >>"$work/unseen"
    return
  fi
  if is_clean tidy "$@"; then return; fi
  if out=$(clang-tidy-19 --quiet "$1" -- "${@:2}" -Wall -Wextra 2>/dev/null); then
    touch "$mark"
  else
    printf '%s\n' "${out//"$work/weft/"/}"
    return 1
  fi
}
# The sources, those that were committed last first.
newest_first() {
  {
    git log --format= --name-only -n 300 2>/dev/null || true
    printf '%s\n' "${sources[@]}"
  } | awk -v RS='\n' 'NR == FNR { wanted[$0]; next } $0 in wanted && !seen[$0]++' <(printf '%s\n' "${sources[@]}") -
}
tidy() {
  export tidy_until=${minutes:+$((EPOCHSECONDS + minutes * 60))}
  newest_first | tr '\n' '\0' | xargs -0 -P "$(nproc)" -I{} bash -c 'tidy_one "$@"' _ {} "${flags[@]}"
}
export -f is_clean compile_alone tidy_one
export work
mkdir -p "$WEFT_CACHE/tidy"
find "$WEFT_CACHE/tidy" -type f -mtime +30 -delete

rule() { python3 tools/rules.py "$1" "${files[@]}"; }

if [[ -n $fix ]]; then
  if ((${#cpp[@]})); then clang-format-19 -i "${cpp[@]}"; fi
  if [[ -x $buildifier ]] && ((${#build[@]})); then "$buildifier" --lint=fix --warnings="$warnings" "${build[@]}"; fi
fi

check "format (clang-format 19)" ${#cpp[@]} format
if [[ -x $buildifier ]]; then
  check "build files (buildifier 8.2.1)" ${#build[@]} lint_build
else
  printf '  %-46s skipped: needs npm (apt-get install npm)\n' "build files (buildifier 8.2.1)"
  skipped=$((skipped + 1))
fi
check "licence lines" ${#files[@]} rule licence
check "include guards" ${#cpp[@]} rule guards
check "includes by their full name" ${#cpp[@]} rule includes
check "no platform conditions in shared code" ${#cpp[@]} rule platforms
check "no registry hosts, no paths of one machine" ${#files[@]} rule names
check "the trap checker itself" 1 python3 tools/traps.py --self-test
check "coroutine traps of gcc 12" ${#cpp[@]} python3 tools/traps.py "${cpp[@]}"
if [[ -z $fast ]]; then
  check "headers stand alone" ${#headers[@]} standalone
  check "clang-tidy 19" ${#sources[@]} tidy
  if [[ -s $work/unseen ]]; then
    printf 'not looked at by clang-tidy, as the time was up: %d files\n' "$(wc -l <"$work/unseen")"
  fi
fi

printf 'check: %d ok, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
