// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/channel.h"

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/sync/test_loop.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

class ChannelTest : public ::testing::Test {
 public:
  void Make(size_t capacity) { channel_ = std::make_unique<Channel<int>>(capacity); }

  Coro<void> Receiver(std::string name) {
    Outcome<std::optional<int>> outcome = co_await NoThrow(channel_->Receive());
    if (outcome.cancelled()) {
      trace_(name, " cancelled");
    } else if (std::optional<int> value = *outcome) {
      trace_(name, " got ", *value);
    } else {
      trace_(name, " at the end");
    }
  }

  Coro<void> Sender(std::string name, int value) {
    Outcome<bool> outcome = co_await NoThrow(channel_->Send(value));
    if (outcome.cancelled()) {
      trace_(name, " cancelled");
    } else {
      trace_(name, *outcome ? " sent" : " refused");
    }
  }

  Trace trace_;
  std::unique_ptr<Channel<int>> channel_ = std::make_unique<Channel<int>>();
  TestLoop loop_;
};

TEST_F(ChannelTest, WithoutCapacityASendWaitsForAReceiver) {
  Spawn(Sender("s1", 1));
  Spawn(Sender("s2", 2));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "");

  Spawn(Receiver("r1"));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "r1 got 1, s1 sent");
  Spawn(Receiver("r2"));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "r2 got 2, s2 sent");
}

TEST_F(ChannelTest, ReceiverThatWaitsIsHandedTheValue) {
  Spawn(Receiver("r1"));
  Spawn(Receiver("r2"));
  loop_.RunRound();

  Spawn(Sender("s1", 1));
  Spawn(Receiver("late"));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "s1 sent, r1 got 1");
  EXPECT_TRUE(channel_->TrySend(2));
  EXPECT_TRUE(channel_->TrySend(3));
  EXPECT_FALSE(channel_->TrySend(4));
  EXPECT_EQ(channel_->TryReceive(), std::nullopt);
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "r2 got 2, late got 3");
}

TEST_F(ChannelTest, HoldsAsMuchAsItsCapacity) {
  Make(2);
  for (int i = 1; i < 5; ++i) Spawn(Sender(absl::StrCat("s", i), i));
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "s1 sent, s2 sent");
  EXPECT_EQ(channel_->Size(), 2);
  EXPECT_EQ(channel_->Capacity(), 2);

  for (int i = 1; i < 5; ++i) {
    EXPECT_THAT(channel_->TryReceive(), Optional(i));
    loop_.RunRound();
  }

  EXPECT_EQ(trace_.Take(), "s3 sent, s4 sent");
  EXPECT_TRUE(channel_->Empty());
}

TEST_F(ChannelTest, UnboundedNeverBlocks) {
  Make(Channel<int>::kUnbounded);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(channel_->TrySend(int(i)));
  for (int i = 0; i < 1000; ++i) EXPECT_THAT(channel_->TryReceive(), Optional(i));
}

TEST_F(ChannelTest, CloseServesWhatWasAcceptedAndRefusesTheRest) {
  Make(1);
  Spawn(Sender("s1", 1));
  Spawn(Sender("s2", 2));
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "s1 sent");

  channel_->Close();
  channel_->Close();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "s2 refused");
  EXPECT_TRUE(channel_->IsClosed());
  Spawn(Sender("s3", 3));
  Spawn(Receiver("r1"));
  Spawn(Receiver("r2"));
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "s3 refused, r1 got 1, r2 at the end");
  EXPECT_FALSE(channel_->TrySend(4));
}

TEST_F(ChannelTest, CloseEndsReceiversThatWait) {
  Spawn(Receiver("r1"));
  Spawn(Receiver("r2"));
  loop_.RunRound();

  channel_->Close();
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "r1 at the end, r2 at the end");
}

TEST_F(ChannelTest, CancelledSendWasNotAccepted) {
  Task<void> s1 = CreateTask(Sender("s1", 1));
  Spawn(Sender("s2", 2));
  loop_.RunRound();

  s1.Cancel();
  EXPECT_THAT(channel_->TryReceive(), Optional(2));
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "s1 cancelled, s2 sent");
}

TEST_F(ChannelTest, AcceptedSendIsNotCancelledAnyMore) {
  Task<void> task = CreateTask([&]() -> Coro<void> {
    co_await Sender("s", 1);
    Outcome<void> next = co_await NoThrow(Yield());
    trace_(next.cancelled() ? "then cancelled" : "not cancelled");
  });
  loop_.RunRound();

  EXPECT_THAT(channel_->TryReceive(), Optional(1));
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "s sent, then cancelled");
}

TEST_F(ChannelTest, ValueOfACancelledReceiverGoesToTheNext) {
  Task<void> r1 = CreateTask(Receiver("r1"));
  Spawn(Receiver("r2"));
  loop_.RunRound();

  channel_->TrySend(1);
  r1.Cancel();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "r1 cancelled");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "r2 got 1");
}

TEST_F(ChannelTest, ValuesOfCancelledReceiversComeFirstAndInOrder) {
  Make(1);
  Task<void> r1 = CreateTask(Receiver("r1"));
  Task<void> r2 = CreateTask(Receiver("r2"));
  loop_.RunRound();
  for (int i = 1; i < 4; ++i) channel_->TrySend(int(i));

  r1.Cancel();
  r2.Cancel();
  Spawn(Sender("s", 4));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "r1 cancelled, r2 cancelled");
  EXPECT_EQ(channel_->Size(), 3);
  for (int i = 1; i < 5; ++i) EXPECT_THAT(channel_->TryReceive(), Optional(i));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "s sent");
}

TEST_F(ChannelTest, NobodyIsAtTheEndWhileAValueMayComeBack) {
  Task<void> r1 = CreateTask(Receiver("r1"));
  Spawn(Receiver("r2"));
  loop_.RunRound();
  channel_->TrySend(1);
  channel_->Close();
  r1.Cancel();
  Spawn(Receiver("r3"));

  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "r1 cancelled, r2 got 1, r3 at the end");
}

TEST_F(ChannelTest, MoveOnlyValuesPass) {
  Channel<std::unique_ptr<int>> channel(1);
  std::vector<int> got;
  Spawn([&]() -> Coro<void> {
    for (int i = 0; i < 5; ++i) co_await channel.Send(std::make_unique<int>(i));
    channel.Close();
  });
  Spawn([&]() -> Coro<void> {
    while (std::optional<std::unique_ptr<int>> value = co_await channel.Receive()) {
      got.push_back(**value);
    }
  });

  loop_.RunUntilIdle();

  EXPECT_THAT(got, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(loop_.pending_tasks(), 0);
}

TEST_F(ChannelTest, DestructionCloses) {
  Spawn(Receiver("r1"));
  loop_.RunRound();
  channel_->TrySend(1);
  Spawn(Receiver("r2"));
  loop_.RunRound();  // r1 has its value.
  Task<void> r3 = CreateTask(Receiver("r3"));
  loop_.RunRound();
  channel_->TrySend(2);  // To r2.
  channel_->TrySend(3);  // To r3.
  r3.Cancel();
  channel_.reset();
  Make(0);
  Spawn(Sender("s", 1));
  loop_.RunRound();
  channel_.reset();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "r1 got 1, r2 got 2, r3 cancelled, s refused");
}

TEST_F(ChannelTest, FramesMayGoBeforeOrAfterTheChannel) {
  Channel<std::string> outer(1);
  auto receive = [](Channel<std::string>& channel) -> Coro<void> {
    (void)co_await channel.Receive();
  };
  Spawn([&]() -> Coro<void> {
    Channel<std::string> inner, other;
    for (int i = 0; i < 3; ++i) Spawn(receive, std::ref(inner));
    for (int i = 0; i < 3; ++i) Spawn(other.Send(std::string(100, 'x')));
    co_await Sleep(absl::Hours(1));
  });
  Spawn(receive, std::ref(outer));
  for (int i = 0; i < 3; ++i) loop_.RunRound();
  outer.TrySend(std::string(100, 'y'));  // Handed over, and not received.

  loop_.Close();

  EXPECT_EQ(outer.Size(), 1);
  EXPECT_EQ(outer.TryReceive(), std::string(100, 'y'));
}

// DBG 312
TEST_F(ChannelTest, TextShowsTheState) {
  EXPECT_EQ(channel_->ToString(), "<Channel capacity=0 size=0>");
  Spawn(Sender("s", 1));
  loop_.RunRound();
  EXPECT_EQ(channel_->ToString(), "<Channel capacity=0 size=0 senders=1>");
  Channel<int> channel(Channel<int>::kUnbounded);
  channel.Close();
  std::ostringstream out;
  out << channel;
  EXPECT_EQ(out.str(), "<Channel capacity=unbounded size=0 closed>");
}

// Its moves throw, after so many; none if negative.
struct Fragile {
  explicit Fragile(int n) : number(n) {}
  Fragile(Fragile&& other) : number(other.number) {
    if (moves_left >= 0 && moves_left-- == 0) {
      broken = number;
      throw std::runtime_error("moved");
    }
  }
  Fragile& operator=(Fragile&&) = default;
  static inline int moves_left = -1;
  static inline int broken = 0;  // The one whose move threw.
  int number;
};

// A value whose move throws may be lost, and who moved it is told; no other is.
TEST_F(ChannelTest, AMoveThatThrowsLosesNoOtherValue) {
  for (int variant = 0; variant < 16 * 24; ++variant) {
    SCOPED_TRACE(variant);
    TestLoop loop;
    Channel<Fragile> channel(variant % 4);
    const bool receiver_is_cancelled = (variant & 4) != 0;
    const bool tries = (variant & 8) != 0;
    std::set<int> accepted, received;
    int errors = 0;
    const auto send = [&](int number) -> Coro<void> {
      try {
        bool taken = co_await channel.Send(Fragile(number));
        if (taken) accepted.insert(number);
      } catch (const std::runtime_error&) {
        ++errors;
      }
    };
    const auto receive = [&]() -> Coro<void> {
      Outcome<std::optional<Fragile>> outcome = co_await NoThrow(channel.Receive());
      if (outcome.cancelled()) co_return;
      if (outcome.has_exception()) {
        ++errors;
      } else if (outcome.value().has_value()) {
        EXPECT_TRUE(received.insert(outcome.value()->number).second);
      }
    };
    Task<void> first = CreateTask(receive());
    loop.RunRound();
    Fragile::broken = 0;
    Fragile::moves_left = variant / 16;
    for (int i = 1; i <= 4; ++i) Spawn(send(i));
    loop.RunRound();
    if (receiver_is_cancelled) first.Cancel();
    for (int i = 0; i < 8; ++i) {
      if (!tries) {
        Spawn(receive());
      } else {
        try {
          std::optional<Fragile> value = channel.TryReceive();
          if (value) received.insert(value->number);
        } catch (const std::runtime_error&) {
          ++errors;
        }
      }
      loop.RunRound();
    }
    Fragile::moves_left = -1;
    loop.RunUntilIdle();
    while (std::optional<Fragile> value = channel.TryReceive()) received.insert(value->number);
    channel.Close();
    loop.RunUntilIdle();

    EXPECT_EQ(loop.pending_tasks(), 0);
    EXPECT_EQ(errors, Fragile::broken != 0 ? 1 : 0);
    accepted.erase(Fragile::broken);
    received.erase(Fragile::broken);
    EXPECT_EQ(accepted, received);
    EXPECT_EQ(accepted.size(), Fragile::broken != 0 ? 3 : 4);
  }
}

// Every accepted value is received once, no other one ever; one receiver at a
// time sees them in order; nobody sleeps while there is something for him.
TEST_F(ChannelTest, NothingIsLostUnderRandomCancellations) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Make(seed % 3);
    int next = 0;
    std::set<int> accepted, received;
    std::vector<Task<void>> tasks;
    int sending = 0, receiving = 0, ended = 0;
    auto send = [&](int value) -> Coro<void> {
      ++sending;
      Outcome<bool> outcome = co_await NoThrow(channel_->Send(value));
      --sending;
      if (!outcome.cancelled() && *outcome) accepted.insert(value);
    };
    auto receive = [&]() -> Coro<void> {
      ++receiving;
      Outcome<std::optional<int>> outcome = co_await NoThrow(channel_->Receive());
      --receiving;
      if (outcome.cancelled()) co_return;
      if (std::optional<int> value = *outcome) {
        EXPECT_TRUE(received.insert(*value).second) << "twice";
      } else {
        ++ended;
      }
    };
    for (int round = 0; round < 100; ++round) {
      for (uint32_t i = random() % 4; i > 0; --i) tasks.push_back(CreateTask(receive));
      for (uint32_t i = random() % 4; i > 0; --i) tasks.push_back(CreateTask(send, next++));
      for (uint32_t i = random() % 4; i > 0 && !tasks.empty(); --i) {
        const size_t newest = std::min<size_t>(tasks.size(), 16);
        tasks[tasks.size() - 1 - random() % newest].Cancel();
      }
      loop_.RunRound();
    }
    EXPECT_EQ(ended, 0);
    if (seed % 2 == 0) {
      loop_.RunUntilIdle();
      EXPECT_TRUE(receiving == 0 || (channel_->Empty() && sending == 0)) << "seed " << seed;
      EXPECT_TRUE(sending == 0 || channel_->Size() >= channel_->Capacity()) << "seed " << seed;
    }
    channel_->Close();
    loop_.RunUntilIdle();
    EXPECT_EQ(loop_.pending_tasks(), 0) << "seed " << seed;
    while (std::optional<int> value = channel_->TryReceive()) {
      EXPECT_EQ(ended, 0) << "seed " << seed << ": at the end too early";
      EXPECT_TRUE(received.insert(*value).second) << "twice";
    }

    EXPECT_EQ(accepted, received) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft
