// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/oracle/program.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::oracle {
namespace {

// What a statement takes, one letter an argument:
//
//   w word   n number   p name of a proc   b block
//   f number or "forever"   m all, first or error   k catch, rethrow or finally
//   s the rest is a plain statement
//   W any number of words   P any number of names of procs, or "collect"
struct Syntax {
  std::string_view name;
  Op op;
  std::string_view arguments;
  bool is_plain = false;
};

constexpr Syntax kSyntax[] = {
    {"yield", Op::kYield, ""},
    {"sleep", Op::kSleep, "n"},
    {"repeat", Op::kRepeat, "nb"},
    {"raise", Op::kRaise, "w"},
    {"return", Op::kReturn, "n"},
    {"spawn", Op::kSpawn, "wp"},
    {"call", Op::kCall, "p"},
    {"await", Op::kAwait, "w"},
    {"cancel_self", Op::kCancelSelf, ""},
    {"uncancel", Op::kUncancel, ""},
    {"cancelling", Op::kCancelling, ""},
    {"soon", Op::kSoon, "ws"},
    {"later", Op::kLater, "wns"},
    {"on_done", Op::kOnDone, "ww"},
    {"gather", Op::kGather, "P"},
    {"gather_these", Op::kGatherThese, "wW"},
    {"wait", Op::kWait, "mfW"},
    {"wait_for", Op::kWaitFor, "np"},
    {"wait_for_this", Op::kWaitForThis, "nw"},
    {"shield", Op::kShield, "w"},
    {"timeout", Op::kTimeout, "nb"},
    {"group", Op::kGroup, "b"},
    {"start", Op::kStart, "wp"},
    {"try", Op::kTry, "bkb"},
    {"wait_event", Op::kWaitEvent, "w"},
    {"lock", Op::kLock, "wb"},
    {"sem", Op::kSem, "wb"},
    {"cond_wait", Op::kCondWait, "w"},
    {"notify", Op::kNotify, "wn"},
    {"put", Op::kPut, "wn"},
    {"get", Op::kGet, "w"},
    {"join", Op::kJoin, "w"},
    {"arrive", Op::kArrive, "w"},
    {"abort", Op::kAbort, "w"},
    {"reset", Op::kReset, "w"},
    {"log", Op::kLog, "w", true},
    {"cancel", Op::kCancel, "w", true},
    {"done", Op::kDone, "w", true},
    {"drop", Op::kDrop, "w", true},
    {"resolve", Op::kResolve, "wn", true},
    {"fail", Op::kFail, "ww", true},
    {"set", Op::kSet, "w", true},
    {"clear", Op::kClear, "w", true},
    {"try_put", Op::kTryPut, "wn", true},
    {"try_get", Op::kTryGet, "w", true},
    {"task_done", Op::kTaskDone, "w", true},
    {"release", Op::kRelease, "w", true},
};

const Syntax* FindSyntax(std::string_view name) {
  for (const Syntax& syntax : kSyntax) {
    if (syntax.name == name) return &syntax;
  }
  return nullptr;
}

// The text of a statement, before anybody knows what it means: words and blocks
// in the order in which they stand.
struct RawStatement {
  struct Word {
    Word() {}

    std::string text;
    bool is_block = false;
    std::vector<RawStatement> block;
  };

  RawStatement() {}

  int line = 0;
  std::vector<Word> words;
};
using RawBlock = std::vector<RawStatement>;

absl::Status Wrong(int line, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

// Words, braces, and a "\n" at the end of each line.
struct Token {
  std::string text;
  int line;
};

std::vector<Token> Tokenize(std::string_view text) {
  std::vector<Token> tokens;
  int line = 0;
  for (std::string_view content : absl::StrSplit(text, '\n')) {
    ++line;
    content = content.substr(0, content.find('#'));
    for (std::string_view word :
         absl::StrSplit(content, absl::ByAnyChar(" \t\r\f\v"), absl::SkipEmpty())) {
      tokens.push_back({std::string(word), line});
    }
    tokens.push_back({"\n", line});
  }
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(Tokenize(text)) {}

  absl::StatusOr<Program> Parse() {
    absl::StatusOr<RawBlock> top = ParseBlock(/*opened_at=*/0);
    if (!top.ok()) return top.status();
    Program program;
    for (const RawStatement& raw : *top) {
      if (absl::Status status = AddTopLevel(raw, &program); !status.ok()) return status;
    }
    if (program.procs.count("main") == 0) {
      return Wrong(tokens_.back().line, "there is no proc main");
    }
    for (const auto& [name, line] : named_procs_) {
      if (program.procs.count(name) == 0) {
        return Wrong(line, absl::StrCat("there is no proc ", name));
      }
    }
    return program;
  }

 private:
  // Up to the brace that closes it, or to the end of the text if `opened_at`, the
  // line of the brace that opens it, is 0.
  absl::StatusOr<RawBlock> ParseBlock(int opened_at) {
    RawBlock block;
    RawStatement statement;
    const auto end_statement = [&] {
      if (!statement.words.empty()) block.push_back(std::move(statement));
      statement = RawStatement();
    };
    while (position_ < tokens_.size()) {
      const Token& token = tokens_[position_++];
      if (token.text == "\n") {
        end_statement();
      } else if (token.text == "}") {
        if (opened_at == 0) return Wrong(token.line, "} without {");
        end_statement();
        return block;
      } else {
        if (statement.words.empty()) statement.line = token.line;
        RawStatement::Word word;
        word.text = token.text;
        if (token.text == "{") {
          if (++depth_ > kMaxDepth) return Wrong(token.line, "blocks are nested too deep");
          absl::StatusOr<RawBlock> inner = ParseBlock(token.line);
          --depth_;
          if (!inner.ok()) return inner.status();
          word.is_block = true;
          word.block = *std::move(inner);
        }
        statement.words.push_back(std::move(word));
      }
    }
    if (opened_at != 0) return Wrong(opened_at, "{ that is not closed");
    end_statement();
    return block;
  }

  absl::Status AddTopLevel(const RawStatement& raw, Program* program) {
    const std::string& kind = raw.words[0].text;
    if (kind == "proc") {
      if (raw.words.size() != 3 || raw.words[1].is_block || !raw.words[2].is_block) {
        return Wrong(raw.line, "expected: proc NAME { ... }");
      }
      absl::StatusOr<Block> body = CheckBlock(raw.words[2].block);
      if (!body.ok()) return body.status();
      program->procs[raw.words[1].text] = *std::move(body);
      return absl::OkStatus();
    }
    const bool is_counted = kind == "sem" || kind == "bsem" || kind == "queue" || kind == "barrier";
    if (!is_counted && kind != "future" && kind != "event" && kind != "lock" && kind != "cond") {
      return Wrong(raw.line, absl::StrCat("unknown object or statement outside of a proc: ", kind));
    }
    Object object;
    object.kind = kind;
    const size_t expected = is_counted ? 3 : 2;
    if (raw.words.size() != expected || raw.words[1].is_block ||
        (is_counted && !absl::SimpleAtoi(raw.words[2].text, &object.number))) {
      return Wrong(raw.line,
                   absl::StrCat("expected: ", kind, is_counted ? " NAME NUMBER" : " NAME"));
    }
    object.name = raw.words[1].text;
    if (kind == "barrier" && object.number < 1)
      return Wrong(raw.line, "a barrier is for 1 or more");
    if (object.number < 0 && kind != "queue") return Wrong(raw.line, "a value below zero");
    program->objects.push_back(std::move(object));
    return absl::OkStatus();
  }

  absl::StatusOr<Block> CheckBlock(const RawBlock& raw) {
    Block block;
    for (const RawStatement& statement : raw) {
      absl::StatusOr<Statement> checked = CheckStatement(statement, /*first=*/0);
      if (!checked.ok()) return checked.status();
      block.push_back(*std::move(checked));
    }
    return block;
  }

  // The statement that begins at word `first` of `raw`.
  absl::StatusOr<Statement> CheckStatement(const RawStatement& raw, size_t first) {
    const Syntax* syntax = FindSyntax(raw.words[first].text);
    if (syntax == nullptr || raw.words[first].is_block) {
      return Wrong(raw.line, absl::StrCat("unknown statement ", raw.words[first].text));
    }
    if (first > 0 && !syntax->is_plain) {
      return Wrong(raw.line,
                   absl::StrCat(syntax->name, " may wait, it cannot stand in a callback"));
    }
    Statement statement;
    statement.op = syntax->op;
    statement.line = raw.line;
    size_t next = first + 1;
    for (const char kind : syntax->arguments) {
      if (kind == 'W' || kind == 'P') {
        for (; next < raw.words.size(); ++next) {
          absl::Status status = AddArgument(*syntax, kind, raw, next, &statement);
          if (!status.ok()) return status;
        }
        break;
      }
      if (next >= raw.words.size()) return TooFew(*syntax, raw);
      if (kind == 's') {
        absl::StatusOr<Statement> plain = CheckStatement(raw, next);
        if (!plain.ok()) return plain.status();
        statement.blocks.emplace_back().push_back(*std::move(plain));
        return statement;
      }
      absl::Status status = AddArgument(*syntax, kind, raw, next++, &statement);
      if (!status.ok()) return status;
    }
    if (next < raw.words.size()) {
      return Wrong(raw.line, absl::StrCat(syntax->name, ": unexpected ", raw.words[next].text));
    }
    return statement;
  }

  absl::Status AddArgument(const Syntax& syntax, char kind, const RawStatement& raw, size_t index,
                           Statement* statement) {
    const RawStatement::Word& word = raw.words[index];
    const auto wrong = [&](std::string_view expected) {
      return Wrong(raw.line,
                   absl::StrCat(syntax.name, ": expected ", expected, " in place of ", word.text));
    };
    if (kind == 'b') {
      if (!word.is_block) return wrong("{");
      absl::StatusOr<Block> block = CheckBlock(word.block);
      if (!block.ok()) return block.status();
      statement->blocks.push_back(*std::move(block));
      return absl::OkStatus();
    }
    if (word.is_block) return wrong("a word");
    if (kind == 'n' || (kind == 'f' && word.text != "forever")) {
      int64_t number;
      if (!absl::SimpleAtoi(word.text, &number)) return wrong("a number");
      statement->numbers.push_back(number);
      return absl::OkStatus();
    }
    if (kind == 'f') return absl::OkStatus();
    if (kind == 'm' && !IsOneOf(word.text, {"all", "first", "error"})) {
      return wrong("all, first or error");
    }
    if (kind == 'k' && !IsOneOf(word.text, {"catch", "rethrow", "finally"})) {
      return wrong("catch, rethrow or finally");
    }
    if (kind == 'p' || (kind == 'P' && word.text != "collect")) {
      named_procs_.emplace_back(word.text, raw.line);
    }
    statement->words.push_back(word.text);
    return absl::OkStatus();
  }

  static absl::Status TooFew(const Syntax& syntax, const RawStatement& raw) {
    return Wrong(raw.line, absl::StrCat(syntax.name, ": something is missing behind ",
                                        raw.words.back().is_block ? "}" : raw.words.back().text));
  }

  static bool IsOneOf(const std::string& word, const std::vector<std::string_view>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  static constexpr int kMaxDepth = 200;

  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::string, int>> named_procs_;  // And the line.
};

}  // namespace

absl::StatusOr<Program> ParseProgram(std::string_view text) { return Parser(text).Parse(); }

}  // namespace weft::oracle
