// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Cancelling each kind of operation at each moment of its life. Whatever the moment,
// it is given back once, with its result or with -ECANCELED; what it did is not lost,
// what it did not do is not done; and when it was given back, nobody touches its
// memory any more, which AddressSanitizer watches: each lies on the heap, with its
// buffer, and goes at once.

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

using ::testing::AnyOf;

namespace {

enum class Moment {
  kAtOnce,           // Before the kernel has seen it.
  kInFlight,         // When the kernel has it.
  kInFlightAndSeen,  // The same, and the kernel has seen the cancelling before it can end.
  kRace,             // When it can end, and nobody has looked.
  kUnseenRace,       // The same, and the kernel has not seen it.
  kLate,             // When it has ended.
  kTwice,
  kAll,  // By `CancelAll()`.
};

constexpr Moment kMoments[] = {Moment::kAtOnce, Moment::kInFlight,   Moment::kInFlightAndSeen,
                               Moment::kRace,   Moment::kUnseenRace, Moment::kLate,
                               Moment::kTwice,  Moment::kAll};

}  // namespace

// Starts `op`, cancels it at `moment`, and returns its result; `enable` makes it able
// to end.
int64_t PollerConformanceTest::CancelAt(int moment, TestOperation* op,
                                        const std::function<void()>& enable) {
  Start(op);
  switch (static_cast<Moment>(moment)) {
    case Moment::kAtOnce:
      poller().Cancel(op);
      enable();
      break;
    case Moment::kInFlight:
      Round();
      poller().Cancel(op);
      enable();
      break;
    case Moment::kInFlightAndSeen:
      Round();
      poller().Cancel(op);
      Round();
      enable();
      break;
    case Moment::kRace:
      Round();
      enable();
      poller().Cancel(op);
      break;
    case Moment::kUnseenRace:
      enable();
      poller().Cancel(op);
      break;
    case Moment::kLate:
      Round();
      enable();
      RunUntilDone(op);
      poller().Cancel(op);
      break;
    case Moment::kTwice:
      Round();
      poller().Cancel(op);
      enable();
      poller().Cancel(op);
      Round();
      poller().Cancel(op);
      break;
    case Moment::kAll:
      Round();
      poller().CancelAll();
      enable();
      break;
  }
  const int64_t result = RunUntilDone(op);
  EXPECT_EQ(op->runs, 1);
  return result;
}

namespace {

std::string Name(Moment moment) { return "moment " + std::to_string(static_cast<int>(moment)); }

// Memory that AddressSanitizer watches.
std::unique_ptr<char[]> HeapBuffer(size_t size) { return std::make_unique<char[]>(size); }

}  // namespace

TEST_P(PollerConformanceTest, AReceiveCanBeCancelledAtAnyMoment) {
  for (const Moment moment : kMoments) {
    SCOPED_TRACE(Name(moment));
    const Pair pair = TcpPair();
    auto op = std::make_unique<TestOperation>();
    auto buffer = HeapBuffer(4);
    op->PrepareRecv(pair.a, buffer.get(), 4);

    const int64_t result =
        CancelAt(static_cast<int>(moment), op.get(), [&] { SendNow(pair.b, "abcd"); });

    ASSERT_THAT(result, AnyOf(4, -ECANCELED));
    std::string got = result > 0 ? std::string(buffer.get(), 4) : "";
    op.reset();
    buffer.reset();
    RunUntilQuiet();
    got += ReceiveAll(pair.a, 4 - got.size());
    EXPECT_EQ(got, "abcd");
  }
}

TEST_P(PollerConformanceTest, AMessageCanBeCancelledAtAnyMoment) {
  for (const Moment moment : kMoments) {
    SCOPED_TRACE(Name(moment));
    SockAddr address1, address2;
    const NativeHandle one = Datagram(&address1);
    const NativeHandle two = Datagram(&address2);
    TestOperation connect;
    connect.PrepareConnect(one, &address2);
    ASSERT_EQ(Do(&connect), 0);
    auto op = std::make_unique<TestOperation>();
    auto buffer = HeapBuffer(4);
    auto piece = std::make_unique<Buffer>(Buffer{buffer.get(), 4});
    auto source = std::make_unique<SockAddr>();
    op->PrepareRecvMsg(two, piece.get(), 1, source.get());

    const int64_t result =
        CancelAt(static_cast<int>(moment), op.get(), [&] { SendNow(one, "abcd"); });

    ASSERT_THAT(result, AnyOf(4, -ECANCELED));
    std::string got = result > 0 ? std::string(buffer.get(), 4) : "";
    op.reset();
    buffer.reset();
    piece.reset();
    source.reset();
    RunUntilQuiet();
    if (got.empty()) got = ReceiveAll(two, 4);
    EXPECT_EQ(got, "abcd");
  }
}

TEST_P(PollerConformanceTest, ALentReceiveCanBeCancelledAtAnyMoment) {
  for (const Moment moment : kMoments) {
    SCOPED_TRACE(Name(moment));
    const Pair pair = TcpPair();
    auto op = std::make_unique<TestOperation>();
    Slab slab;
    op->PrepareRecvLent(pair.a);
    if (poller().Start(op.get()) == StartResult::kDone) {
      ASSERT_EQ(poller().FetchLent(op.get(), &pool_, &slab), StartResult::kPending);
    }
    const auto enable = [&] { SendNow(pair.b, "abcd"); };
    if (moment != Moment::kAtOnce && moment != Moment::kUnseenRace) Round();
    if (moment == Moment::kRace || moment == Moment::kUnseenRace || moment == Moment::kLate) {
      enable();
    }
    if (moment == Moment::kLate) RunUntilDone(op.get());
    const bool was_announced = op->runs > 0;
    moment == Moment::kAll ? poller().CancelAll() : poller().Cancel(op.get());
    if (moment == Moment::kInFlightAndSeen) Round();
    if (moment != Moment::kRace && moment != Moment::kUnseenRace && moment != Moment::kLate) {
      enable();
    }
    if (moment == Moment::kTwice) poller().Cancel(op.get());

    const int64_t result = RunUntilDone(op.get());
    std::string got;
    if (result >= 0 && !was_announced) {
      ASSERT_EQ(poller().FetchLent(op.get(), &pool_, &slab), StartResult::kDone);
      got.assign(slab.data(), static_cast<size_t>(op->result));
    } else {
      EXPECT_EQ(result, -ECANCELED);
    }
    op.reset();
    slab.Reset();
    RunUntilQuiet();
    got += ReceiveAll(pair.a, 4 - got.size());
    EXPECT_EQ(got, "abcd");
  }
}

TEST_P(PollerConformanceTest, ASendThatWaitsCanBeCancelledAtAnyMoment) {
  for (const bool in_pieces : {false, true}) {
    for (const Moment moment : kMoments) {
      SCOPED_TRACE(Name(moment));
      const Pair pair = StreamPair();
      const std::string filling(1 << 20, '.');
      size_t expected = 0;
      for (int64_t sent = 0; (sent = SendNow(pair.a, filling)) > 0;) {
        expected += static_cast<size_t>(sent);
      }
      auto op = std::make_unique<TestOperation>();
      auto buffer = HeapBuffer(4);
      std::copy_n("abcd", 4, buffer.get());
      auto pieces = std::make_unique<Buffer[]>(2);
      pieces[0] = {buffer.get(), 2};
      pieces[1] = {buffer.get() + 2, 2};
      if (in_pieces) {
        op->PrepareSendMsg(pair.a, pieces.get(), 2);
      } else {
        op->PrepareSend(pair.a, buffer.get(), 4);
      }
      std::string got;
      const auto receive = [&] {
        while (true) {
          const std::string some = ReceiveNow(pair.b, 1 << 16);
          if (some.empty()) return;
          got += some;
        }
      };

      const int64_t result = CancelAt(static_cast<int>(moment), op.get(), receive);

      ASSERT_THAT(result, AnyOf(4, -ECANCELED));
      op.reset();
      buffer.reset();
      pieces.reset();
      RunUntilQuiet();
      if (result > 0) expected += static_cast<size_t>(result);
      receive();
      ASSERT_EQ(got.size(), expected);
      EXPECT_EQ(got.substr(got.size() - 4), result > 0 ? "abcd" : "....");
    }
  }
}

TEST_P(PollerConformanceTest, AnAcceptCanBeCancelledAtAnyMoment) {
  for (const Moment moment : kMoments) {
    SCOPED_TRACE(Name(moment));
    SockAddr address;
    const NativeHandle listener = Listener(&address);
    const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
    TestOperation connect;
    connect.PrepareConnect(client, &address);
    auto op = std::make_unique<TestOperation>();
    auto peer = std::make_unique<SockAddr>();
    op->PrepareAccept(listener, peer.get());

    int64_t result =
        CancelAt(static_cast<int>(moment), op.get(), [&] { ASSERT_EQ(Do(&connect), 0); });

    op.reset();
    peer.reset();
    RunUntilQuiet();
    if (result < 0) {
      EXPECT_EQ(result, -ECANCELED);
      TestOperation again;
      again.PrepareAccept(listener);
      result = Do(&again);
    }
    const NativeHandle server = Own(result);
    SendNow(client, "x");
    EXPECT_EQ(ReceiveAll(server, 1), "x");
  }
}

TEST_P(PollerConformanceTest, AConnectCanBeCancelledAtAnyMoment) {
  for (const Moment moment : kMoments) {
    SCOPED_TRACE(Name(moment));
    SockAddr address;
    const NativeHandle listener = Listener(&address);
    const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
    auto op = std::make_unique<TestOperation>();
    auto to = std::make_unique<SockAddr>(address);
    op->PrepareConnect(client, to.get());

    const int64_t result = CancelAt(static_cast<int>(moment), op.get(), [] {});

    EXPECT_THAT(result, AnyOf(0, -ECANCELED));
    op.reset();
    to.reset();
    RunUntilQuiet();
    EXPECT_EQ(Retire(client), 0);
    EXPECT_EQ(Retire(listener), 0);
  }
}

// Retiring with everything at work, at each stage of it.
TEST_P(PollerConformanceTest, AHandleCanBeRetiredAtAnyMoment) {
  for (int rounds = 0; rounds < 3; ++rounds) {
    for (const bool is_enabled : {false, true}) {
      SCOPED_TRACE(std::to_string(rounds) + (is_enabled ? " enabled" : ""));
      const Pair pair = TcpPair();
      const std::string filling(1 << 20, '.');
      while (SendNow(pair.a, filling) > 0) {
      }
      order_.clear();
      auto buffer = HeapBuffer(8);
      std::vector<std::unique_ptr<TestOperation>> ops;
      for (int i = 0; i < 6; ++i) ops.push_back(std::make_unique<TestOperation>(&order_));
      ops[0]->PrepareRecvLent(pair.a);
      ops[1]->PrepareSend(pair.a, buffer.get(), 4);
      ops[2]->PrepareRecv(pair.a, buffer.get() + 4, 4);
      ops[3]->PrepareSend(pair.a, buffer.get(), 4);
      ops[4]->PrepareWaitReadable(pair.a);
      ops[5]->PrepareRetire(pair.a);
      for (int i = 0; i < 5; ++i) {
        ops[i]->poller = &poller();
        if (poller().Start(ops[i].get()) == StartResult::kPending) continue;
        Slab slab;
        if (i != 0 || poller().FetchLent(ops[0].get(), &pool_, &slab) == StartResult::kDone) {
          ops[i]->Run();
        }
      }
      for (int i = 0; i < rounds; ++i) Round();
      if (is_enabled) SendNow(pair.b, "abcd");
      Disown(pair.a);

      ASSERT_EQ(poller().Start(ops[5].get()), StartResult::kPending);
      EXPECT_EQ(RunUntilDone(ops[5].get()), 0);

      for (auto& op : ops) EXPECT_EQ(op->runs, 1);
      EXPECT_EQ(order_.back(), ops[5].get());
      ops.clear();
      buffer.reset();
      RunUntilQuiet();
      Retire(pair.b);
    }
  }
}

// --- Chaos ---

namespace {

// The byte at `position` of a stream.
char ByteAt(size_t position) { return static_cast<char>('a' + position * 7 % 26); }

// A connection, what went in at one end, and what came out at the other.
struct Channel {
  NativeHandle from = kInvalidHandle;
  NativeHandle to = kInvalidHandle;
  size_t sent = 0;
  size_t received = 0;
  bool is_sending = false;
  bool is_receiving = false;
};

// An operation with all that it needs, on the heap; it goes when it has run.
struct ChaosOperation {
  TestOperation op;
  Channel* channel = nullptr;
  bool is_receive = false;
  std::vector<char> bytes;
  std::vector<Buffer> pieces;
};

}  // namespace

// Everything at random, from the same seeds in every run. A channel's bytes come out
// as they went in, however often its operations were cancelled.
TEST_P(PollerConformanceTest, ChaosLosesNothing) {
  constexpr int kChannels = 12, kSteps = 1'500;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<Channel>> channels;
    std::vector<std::unique_ptr<ChaosOperation>> ops;
    const auto open = [&](Channel* channel) {
      const Pair pair = random() % 2 == 0 ? TcpPair() : StreamPair();
      *channel = Channel{pair.a, pair.b};
      sockets_->SetOption(pair.a, SocketOption::kSendBuffer, 4'096);
    };
    for (int i = 0; i < kChannels; ++i) {
      channels.push_back(std::make_unique<Channel>());
      open(channels.back().get());
    }

    const auto take = [&](Channel* channel, const char* data, size_t size) {
      for (size_t i = 0; i < size; ++i) {
        if (data[i] != ByteAt(channel->received)) {
          ADD_FAILURE() << "at " << channel->received;
          return;
        }
        ++channel->received;
      }
    };
    // What has run, and what is to be made of it. False if it goes on.
    const auto settle = [&](ChaosOperation* each) {
      if (each->op.runs == 0) return false;
      Channel* channel = each->channel;
      if (each->op.opcode == OpCode::kRecvLent && each->op.result >= 0) {
        if (random() % 4 == 0) {
          poller().Cancel(&each->op);  // Gives up its turn.
        } else {
          Slab slab;
          if (poller().FetchLent(&each->op, &pool_, &slab) == StartResult::kPending) {
            each->op.runs = 0;
            return false;
          }
          if (each->op.result > 0) take(channel, slab.data(), static_cast<size_t>(each->op.result));
        }
      } else if (each->is_receive && each->op.result > 0) {
        take(channel, each->bytes.data(), static_cast<size_t>(each->op.result));
      } else if (!each->is_receive && each->op.result > 0) {
        channel->sent += static_cast<size_t>(each->op.result);
      }
      (each->is_receive ? channel->is_receiving : channel->is_sending) = false;
      return true;
    };
    const auto settle_all = [&] {
      ops.erase(std::remove_if(ops.begin(), ops.end(),
                               [&](const auto& each) { return settle(each.get()); }),
                ops.end());
    };
    const auto start = [&](std::unique_ptr<ChaosOperation> each) {
      (each->is_receive ? each->channel->is_receiving : each->channel->is_sending) = true;
      Start(&each->op);
      ops.push_back(std::move(each));
    };

    for (int step = 0; step < kSteps; ++step) {
      Channel* channel = channels[random() % kChannels].get();
      auto each = std::make_unique<ChaosOperation>();
      each->channel = channel;
      const size_t size = 1 + random() % 3'000;
      switch (random() % 10) {
        case 0:
        case 1: {  // Sends.
          if (channel->is_sending) break;
          for (size_t i = 0; i < size; ++i) each->bytes.push_back(ByteAt(channel->sent + i));
          if (random() % 2 == 0) {
            each->op.PrepareSend(channel->from, each->bytes.data(), size);
          } else {
            each->pieces = {{each->bytes.data(), size / 2},
                            {each->bytes.data() + size / 2, size - size / 2}};
            each->op.PrepareSendMsg(channel->from, each->pieces.data(), 2);
          }
          each->op.is_quiet = random() % 2 == 0;
          start(std::move(each));
          break;
        }
        case 2:
        case 3: {  // Receives.
          if (channel->is_receiving) break;
          each->is_receive = true;
          each->bytes.resize(size);
          switch (random() % 3) {
            case 0:
              each->op.PrepareRecvLent(channel->to);
              break;
            case 1:
              each->op.PrepareRecv(channel->to, each->bytes.data(), size);
              break;
            case 2:
              each->pieces = {{each->bytes.data(), size}};
              each->op.PrepareRecvMsg(channel->to, each->pieces.data(), 1);
              break;
          }
          start(std::move(each));
          break;
        }
        case 4:
        case 5:
        case 6: {  // Cancels.
          if (ops.empty()) break;
          ChaosOperation* victim = ops[random() % ops.size()].get();
          if (victim->op.runs == 0) poller().Cancel(&victim->op);
          break;
        }
        case 7: {  // Retires, and opens anew.
          if (random() % 20 != 0) break;
          Retire(channel->from);
          Retire(channel->to);
          settle_all();
          ASSERT_FALSE(channel->is_sending || channel->is_receiving);
          ASSERT_LE(channel->received, channel->sent);
          open(channel);
          break;
        }
        case 8:
          if (random() % 50 == 0) poller().CancelAll();
          break;
        default:
          Round();
          break;
      }
      settle_all();
    }

    poller().CancelAll();
    while (!ops.empty()) {
      Round(In(10));
      settle_all();
    }
    for (auto& channel : channels) {
      const std::string rest = ReceiveAll(channel->to, channel->sent - channel->received);
      take(channel.get(), rest.data(), rest.size());
      EXPECT_EQ(channel->received, channel->sent);
      Retire(channel->from);
      Retire(channel->to);
    }
    EXPECT_EQ(pool_.outstanding_count(), 0u);
  }
}

}  // namespace weft
