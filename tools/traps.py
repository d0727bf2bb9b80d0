#!/usr/bin/env python3
# Copyright 2026 The weft Authors.
# SPDX-License-Identifier: Apache-2.0

"""Finds coroutine code that gcc 12 compiles wrongly, or not at all, and says nothing about.

  tools/traps.py FILE...          one line a finding; exit code 1 if there is one
  tools/traps.py --self-test      checks itself against traps_testdata.txt

All of them are about the full expression around a co_await or a co_yield:

  condition    if/while/for/switch/do condition without a variable of its own: the awaiter
               gets no place in the frame if the function has no local variable.
  capture      a lambda with a capture by value: its members are destroyed twice.
  braces       {...} that builds an object: an aggregate's members are destroyed twice, and an
               initializer list does not compile. An aggregate made in parentheses, `Job(1, s)`,
               is as bad, and looks like a call: that one is not found.
  conditional  co_await in a branch of ?:, or ?: as its operand: what it yields may be
               destroyed twice.

A line that is known to be right (say, everything in it is trivial) ends in
`// NOLINT(weft-trap): why`.

It reads tokens, not C++: it knows brackets, lambdas and statements, and no types.
"""

import os
import re
import sys

MENDS = {
    "condition": "co_await in a condition: `if (auto v = co_await ...; v)`, or a named local before it",
    "capture": "lambda with a capture by value in an expression with co_await: name the lambda first, then co_await f(std::move(fn))",
    "braces": "braces in an expression with co_await: name the object first, or give its type a constructor and call that",
    "conditional": "?: around or under co_await: use if/else, or name the operand first",
}

TOKEN = re.compile(
    r"""
    (?P<skip>\s+ | //[^\n]* | /\*.*?\*/ | \#(?:\\\n|[^\n])*)
  | (?P<raw>(?:u8|u|U|L)?R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)")
  | (?P<text>(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*" | (?:u8|u|U|L)?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>::|->|<=>|==|!=|<=|>=|&&|\|\||\+\+|--|[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)

OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = {")": "(", "]": "[", "}": "{"}
# What may stand between a function's parameters and its body.
BEFORE_BODY = {"const", "noexcept", "override", "final", "mutable", "try", "else", "do", "constexpr"}
STATEMENT_WORDS = {"return", "co_return", "co_yield", "co_await", "throw", "case", "new"}


def tokenize(source):
    """Returns [(text, line)] without comments and preprocessor lines."""
    tokens, line = [], 1
    for match in TOKEN.finditer(source):
        text = match.group()
        if match.lastgroup != "skip" or match.group("raw"):
            if match.group("raw") or match.group("text"):
                tokens.append(('""', line))
            elif match.group("number"):
                tokens.append(("0", line))
            elif not match.group("skip"):
                tokens.append((text, line))
        line += text.count("\n")
    return tokens


def is_word(text):
    return text[0].isalpha() or text[0] == "_"


class Source:
    """The tokens of one file, and which brackets belong together."""

    def __init__(self, source):
        pairs = tokenize(source)
        self.text = [text for text, _ in pairs]
        self.line = [line for _, line in pairs]
        self.mate = {}
        self.parent = []  # The innermost bracket that is open at each token, or -1.
        stack = []
        for i, text in enumerate(self.text):
            if text in CLOSE and stack and self.text[stack[-1]] == CLOSE[text]:
                start = stack.pop()
                self.mate[start], self.mate[i] = i, start
            self.parent.append(stack[-1] if stack else -1)
            if text in OPEN:
                stack.append(i)
        self.lambdas = {}  # `[` of a lambda -> its `{`.
        self.bodies = set()
        for i, text in enumerate(self.text):
            if text == "[" and self._is_lambda(i):
                body = self._lambda_body(i)
                if body is not None:
                    self.lambdas[i] = body
                    self.bodies.add(body)

    def at(self, i):
        return self.text[i] if 0 <= i < len(self.text) else ""

    def _is_lambda(self, i):
        if i not in self.mate:
            return False
        before = self.at(i - 1)
        if before in (")", "]", '""') or self.at(i + 1) == "[" or before == "[":
            return False
        if is_word(before or "0"):
            return before in STATEMENT_WORDS
        # auto& [a, b] = ...
        return not (before in ("&", "&&") and self.at(i - 2) == "auto")

    def _lambda_body(self, i):
        j = self.mate[i] + 1
        while j < len(self.text):
            text = self.text[j]
            if text == "{":
                return j
            if text in (";", ",") or text in CLOSE:
                return None
            j = self.mate.get(j, j) + 1 if text in OPEN else j + 1
        return None

    def is_block(self, i):
        """Whether the `{` at i begins statements or declarations (and no object)."""
        if i in self.bodies:
            return True
        before = self.at(i - 1)
        if before in ("", ";", "{", "}", ")", ":") or before in BEFORE_BODY:
            # `f(){...}` is no object, but `, {` and `({` are.
            return True
        # The words before it: class X {, namespace x {, enum class E : int {, f() -> T<U> {.
        j, start = i - 1, self.parent[i]
        while j > start and self.text[j] not in (";", "}", "{", "=", "return", "co_return"):
            text = self.text[j]
            if text in ("class", "struct", "union", "enum", "namespace", "concept", "extern"):
                return True
            if text == "->" and self.at(j - 1) in (")", "const", "noexcept", "mutable"):
                return True
            j = self.mate[j] - 1 if text in CLOSE and j in self.mate else j - 1
        return False

    def expression(self, i):
        """The full expression around token i: its first token, and one past its last.

        The third value is the `(` of the condition that it is, or -1.
        """
        start, end, condition = i, i, -1
        while True:
            j = start - 1
            while j >= 0 and self.text[j] != ";" and self.text[j] not in OPEN:
                if self.text[j] == "}" and self.is_block(self.mate.get(j, j)):
                    # A lambda's body belongs to the expression, another block ends before it.
                    if self.mate.get(j) not in self.bodies:
                        break
                j = self.mate.get(j, j) - 1 if self.text[j] in CLOSE else j - 1
            first = j + 1
            j = end
            while j < len(self.text) and self.text[j] != ";" and self.text[j] not in CLOSE:
                if self.text[j] == "{" and self.is_block(j) and j not in self.bodies:
                    break
                j = self.mate.get(j, j) + 1 if self.text[j] in OPEN else j + 1
            last = j
            outer = self.parent[i] if start == i else self.parent[start]
            start = first
            if outer < 0 or (self.text[outer] == "{" and self.is_block(outer)):
                return start, last, condition
            if self.text[outer] == "(":
                keyword = self.at(outer - 1)
                if keyword == "constexpr":
                    keyword = self.at(outer - 2)
                if keyword in ("if", "while", "for", "switch"):
                    return start, last, outer
            start, end = outer, self.mate.get(outer, len(self.text) - 1) + 1
            i = outer

    def inner(self, first, last):
        """The tokens of [first, last) that are not in the body of a lambda."""
        j = first
        while j < last:
            yield j
            j = self.mate[j] if j in self.bodies else j + 1

    def declares(self, first, last):
        """Whether the condition [first, last) declares a variable: `auto v = ...`."""
        if not is_word(self.text[first]):
            return False
        for j in range(first, last):
            if self.text[j] == "=":
                if self.at(j - 1) == "]":
                    return "auto" in self.text[first:j]
                return is_word(self.at(j - 1)) and j - 2 >= first and self.at(j - 2) not in (".", "->", "::")
            if self.text[j] in ("(", "==", "!", "co_await"):
                return False
        return False

    def captures_by_value(self, i):
        depth, item = 0, []
        for j in range(i + 1, self.mate[i] + 1):
            text = self.text[j]
            if depth == 0 and (text == "," or j == self.mate[i]):
                if item and item[0] != "&" and item != ["this"]:
                    trivial = len(item) == 3 and item[1] == "=" and item[2] in ("0", "true", "false", "nullptr")
                    if not trivial:
                        return True
                item = []
                continue
            depth += (text in OPEN) - (text in CLOSE)
            item.append(text)
        return False

    def findings(self):
        found = set()
        for i, text in enumerate(self.text):
            if text not in ("co_await", "co_yield") or self.at(i - 1) == "operator":
                continue
            first, last, condition = self.expression(i)
            if condition >= 0:
                keyword = self.at(condition - 1)
                is_range_for = keyword == "for" and ":" in self.text[first:last]
                is_init = self.text[last] == ";" and (keyword != "for" or self.at(first - 1) == "(")
                if not is_init and not is_range_for and not self.declares(first, last):
                    found.add((self.line[i], "condition"))
            # `T x{co_await ...}` and `T x = {co_await ...}` build an object, too.
            question = []
            for j in self.inner(first, last):
                if self.text[j] == "{" and j not in self.bodies:
                    found.add((self.line[j], "braces"))
                if j in self.lambdas and self.captures_by_value(j):
                    found.add((self.line[j], "capture"))
                if self.text[j] == "?":
                    question.append(j)
            for j in question:
                # In a branch: after the ?, at its level or deeper. As the operand: co_await (c ? ...).
                level = self.parent[j]
                end = self.mate.get(level, last) if level >= first else last
                if j < i < end or (level >= 0 and self.text[level] == "(" and level == i + 1):
                    found.add((self.line[j], "conditional"))
        return sorted(found)


def check(path):
    with open(path, encoding="utf-8") as file:
        source = file.read()
    if "co_await" not in source and "co_yield" not in source:
        return []
    lines = source.split("\n")
    return [(line, trap) for line, trap in Source(source).findings() if "NOLINT(weft-trap)" not in lines[line - 1]]


def self_test():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "traps_testdata.txt")
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    expected = [(n, trap) for n, text in enumerate(lines, 1) for trap in re.findall(r"// TRAP\((\w+)\)", text)]
    actual = check(path)
    for line, trap in sorted(set(expected) - set(actual)):
        print(f"{path}:{line}: a trap that is not found: {trap}")
    for line, trap in sorted(set(actual) - set(expected)):
        print(f"{path}:{line}: found, but no trap: {trap}")
    return 0 if expected and sorted(expected) == actual else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.strip())
        return 0 if arguments in (["--help"], ["-h"]) else 2
    count = 0
    for path in arguments:
        for line, trap in check(path):
            print(f"{path}:{line}: {MENDS[trap]}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
