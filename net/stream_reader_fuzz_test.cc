// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A StreamReader against a model that is too simple to be wrong: the whole text, and
// what of it is left. The fuzzer chooses the text, into which pieces it is cut, how
// they come, and what is read. However that is, the results may depend on the text only;
// where they may depend on the pieces, as what a Read() returns, they must fit.
//
//   the limit | number of reads | reads, two bytes each | number of pieces | pieces | text

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/net/connection.h"
#include "weft/net/socket.h"
#include "weft/testing/fuzz_input.h"

namespace weft {
namespace {

using Separators = std::vector<std::string>;

struct Match {
  size_t begin;
  size_t end;
};

// The shortest beginning of `text` that ends with one of them; the first of those that fit.
std::optional<Match> Find(std::string_view text, const Separators& separators) {
  for (size_t end = 1; end <= text.size(); ++end) {
    for (const std::string& separator : separators) {
      if (end < separator.size()) continue;
      const size_t begin = end - separator.size();
      if (text.substr(begin, separator.size()) == separator) return Match{begin, end};
    }
  }
  return std::nullopt;
}

size_t Longest(const Separators& separators) {
  size_t longest = 0;
  for (const std::string& separator : separators) longest = std::max(longest, separator.size());
  return longest;
}

// One input.
class Run {
 public:
  explicit Run(FuzzInput input)
      : limit_(1 + input.Below(200)),
        reads_(input.Take(2 * input.Below(64))),
        pieces_(input.Take(input.Below(64))),
        text_(input.Rest().substr(0, 4096)) {}

  Coro<void> Main() {
    std::pair<Socket, Socket> sockets = Socket::Pair().value();
    Connection near = ToConnection(std::move(sockets.first), limit_);
    Connection far = ToConnection(std::move(sockets.second));
    Task<void> sender = CreateTask(Send(std::move(far.writer)));
    reader_ = &near.reader;

    FuzzInput reads(reinterpret_cast<const uint8_t*>(reads_.data()), reads_.size());
    while (!reads.empty()) {
      const uint8_t kind = reads.Byte();
      co_await Read(kind, reads.Byte());
    }
    co_await ReadRest();
    co_await sender;
  }

 private:
  std::string_view rest() const { return text_.substr(position_); }

  Coro<void> Send(StreamWriter writer) {
    std::string_view left = text_;
    for (const char piece : pieces_) {
      const auto byte = static_cast<uint8_t>(piece);
      const size_t count = std::min<size_t>(left.size(), byte % 64);
      writer.Write(left.substr(0, count));
      left.remove_prefix(count);
      for (int rounds = byte / 64; rounds > 0; --rounds) co_await Yield();
    }
    writer.Write(left);
    writer.Close();
  }

  // `text` was read: it is what comes next.
  void Took(std::string_view text) {
    FuzzCheck(rest().substr(0, text.size()) == text, "it is not what was sent");
    position_ += text.size();
  }

  Coro<void> Read(uint8_t kind, uint8_t argument) {
    switch (kind % 10) {
      case 0:
        return ReadExactly(argument);
      case 1:
        return ReadUntil(Separators(1, "\n"));
      case 2:
        return ReadUntil(Separators(1, "aab"));
      case 3:
        return ReadUntil({"aab", "b", "\r\n", "\n"});
      case 4:
      case 5:
        return ReadLine();
      case 6:
        return ReadSome(argument);
      case 7:
        return ReadInto(argument);
      case 8:
        return Fill(argument);
      default:
        return GiveUp(argument);
    }
  }

  Coro<void> ReadExactly(size_t count) {
    const size_t available = rest().size();
    absl::StatusOr<std::string> got = co_await reader_->ReadExactly(static_cast<int64_t>(count));
    if (available < count) {
      FuzzCheck(absl::IsOutOfRange(got.status()), "ReadExactly() at the end");
      co_return;
    }
    FuzzCheck(got.ok() && got->size() == count, "ReadExactly() is not exact");
    Took(*got);
  }

  // Whether a search has to give up, whatever comes first.
  bool IsTooLong(const std::optional<Match>& match, size_t longest) const {
    if (match.has_value()) return match->begin > limit_;
    return rest().size() + 1 > limit_ + longest;
  }

  Coro<void> ReadUntil(Separators separators) {
    const std::optional<Match> match = Find(rest(), separators);
    absl::StatusOr<std::string> got = co_await reader_->ReadUntil(separators);
    if (IsTooLong(match, Longest(separators))) {
      FuzzCheck(absl::IsResourceExhausted(got.status()), "ReadUntil() beyond the limit");
    } else if (!match.has_value()) {
      FuzzCheck(absl::IsOutOfRange(got.status()), "ReadUntil() at the end");
    } else {
      FuzzCheck(got.ok() && got->size() == match->end, "ReadUntil() to the wrong place");
      Took(*got);
    }
  }

  Coro<void> ReadLine() {
    const std::optional<Match> match = Find(rest(), Separators(1, "\n"));
    absl::StatusOr<std::string> got = co_await reader_->ReadLine();
    if (!IsTooLong(match, 1)) {
      const size_t size = match.has_value() ? match->end : rest().size();
      FuzzCheck(got.ok() && got->size() == size, "ReadLine() to the wrong place");
      Took(*got);
      co_return;
    }
    FuzzCheck(absl::IsResourceExhausted(got.status()), "ReadLine() beyond the limit");
    // How much is dropped depends on what had come; no more than the line, and more than the
    // limit.
    absl::StatusOr<absl::Span<const char>> unread = co_await reader_->Fill(text_.size() + 1);
    FuzzCheck(unread.ok() && unread->size() < rest().size(), "ReadLine() drops nothing");
    const size_t dropped = rest().size() - unread->size();
    FuzzCheck(dropped > limit_, "ReadLine() drops a line that is short enough");
    FuzzCheck(!match.has_value() || dropped <= match->end, "ReadLine() drops the next line");
    position_ += dropped;
  }

  // What was got in one piece, of at most `count` bytes.
  void TookSome(std::string_view got, size_t count) {
    FuzzCheck(got.size() <= count, "too much");
    FuzzCheck(!got.empty() || count == 0 || rest().empty(), "nothing, before the end");
    Took(got);
  }

  Coro<void> ReadSome(size_t count) {
    absl::StatusOr<std::string> got = co_await reader_->Read(static_cast<int64_t>(count));
    FuzzCheck(got.ok(), "Read() fails");
    TookSome(*got, count);
  }

  Coro<void> ReadInto(size_t count) {
    std::vector<char> bytes(count);
    absl::StatusOr<size_t> got = co_await reader_->ReadInto(absl::MakeSpan(bytes));
    FuzzCheck(got.ok(), "ReadInto() fails");
    TookSome(std::string_view(bytes.data(), *got), count);
  }

  Coro<void> Fill(size_t at_least) {
    absl::StatusOr<absl::Span<const char>> got = co_await reader_->Fill(at_least);
    FuzzCheck(got.ok(), "Fill() fails");
    FuzzCheck(got->size() >= std::min(at_least, rest().size()), "Fill() is not full");
    const std::string_view unread(got->data(), got->size());
    FuzzCheck(rest().substr(0, unread.size()) == unread, "it is not what was sent");
    const size_t count = std::min(unread.size(), at_least / 2);
    Took(unread.substr(0, count));
    reader_->Consume(count);
  }

  // A read that is cancelled, or has what it wants, takes nothing, or just that.
  Coro<void> GiveUp(size_t count) {
    Outcome<absl::StatusOr<std::string>> got = co_await NoThrow(
        WithTimeout(absl::ZeroDuration(), reader_->ReadExactly(static_cast<int64_t>(count))));
    if (!got.has_value() || !(*got).ok()) co_return;
    FuzzCheck((*got)->size() == count, "ReadExactly() is not exact");
    Took(**got);
  }

  Coro<void> ReadRest() {
    absl::StatusOr<std::string> got = co_await reader_->Read();
    FuzzCheck(got.ok() && got->size() == rest().size(), "the rest is not all that is left");
    Took(*got);
    FuzzCheck(reader_->AtEof(), "the end is none");
  }

  const size_t limit_;
  const std::string_view reads_;
  const std::string_view pieces_;
  const std::string_view text_;
  size_t position_ = 0;  // Up to here it was read.
  StreamReader* reader_ = nullptr;
};

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // One for all inputs: it is what takes the longest to make.
  static weft::EventLoop& loop = *weft::EventLoop::Create().value().release();
  weft::Run run(weft::FuzzInput(data, size));
  loop.RunUntilComplete(run.Main());
  loop.RunOnce(absl::ZeroDuration());  // For what is still closing.
  weft::FuzzCheck(loop.slab_pool().outstanding_count() == 0, "a buffer is lost");
  return 0;
}
