// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/ring_buffer.h"

#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include "gtest/gtest.h"
#include "weft/testing/thrown_by.h"

namespace weft {
namespace {

using internal::RingBuffer;

TEST(RingBufferTest, IsAQueueWhereverItsFirstItemLies) {
  RingBuffer<std::unique_ptr<int>> buffer;
  std::deque<int> model;
  std::mt19937 random(7);
  int next = 0;
  for (int step = 0; step < 100000; ++step) {
    // In turns mostly in and mostly out, so that it grows with its items wrapped.
    const bool put = model.empty() || random() % 100 < (step / 1000 % 2 == 0 ? 52u : 48u);
    if (put) {
      buffer.PushBack(std::make_unique<int>(next));
      model.push_back(next++);
    } else {
      ASSERT_EQ(*buffer.PopFront(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(buffer.size(), model.size());
    ASSERT_EQ(buffer.empty(), model.empty());
  }
}

TEST(RingBufferTest, ItsItemsGoWithIt) {
  auto item = std::make_shared<int>(0);
  {
    RingBuffer<std::shared_ptr<int>> buffer;
    for (int i = 0; i < 9; ++i) buffer.PushBack(item);
    buffer.PopFront();
    EXPECT_EQ(item.use_count(), 9);
    buffer.Clear();
    EXPECT_EQ(item.use_count(), 1);
    buffer.PushBack(item);
  }
  EXPECT_EQ(item.use_count(), 1);
}

// Counts down, and throws when it is copied or moved at zero.
struct Fuse {
  explicit Fuse(int number, int* left) : number(number), left(left) {}
  Fuse(const Fuse& other) : number(other.number), left(other.left) { Burn(); }
  Fuse(Fuse&& other) : number(std::exchange(other.number, -1)), left(other.left) { Burn(); }
  void Burn() const {
    if ((*left)-- == 0) throw std::runtime_error("it has burnt down");
  }

  int number;
  int* left;
};

TEST(RingBufferTest, NothingIsLostIfItCannotGrow) {
  for (int fail_at = 0; fail_at < 9; ++fail_at) {  // Of eight that move over, and the ninth.
    int left = 1000;
    RingBuffer<Fuse> buffer;
    for (int i = 0; i < 5; ++i) buffer.PushBack(Fuse(i, &left));
    // The first lies in the midst of the array.
    for (int i = 0; i < 2; ++i) EXPECT_EQ(buffer.PopFront().number, i);
    for (int i = 5; i < 10; ++i) buffer.PushBack(Fuse(i, &left));
    ASSERT_EQ(buffer.size(), 8u);  // It is full.

    Fuse one_more(10, &left);
    left = fail_at;
    EXPECT_EQ(ThrownBy([&] { buffer.PushBack(one_more); }),
              "std::runtime_error: it has burnt down");

    left = 1000;
    ASSERT_EQ(buffer.size(), 8u);
    for (int i = 2; i < 10; ++i) EXPECT_EQ(buffer.PopFront().number, i);
  }
}

TEST(RingBufferTest, AnItemWhoseMoveThrowsOnItsWayOutIsGone) {
  int left = 1000;
  RingBuffer<Fuse> buffer;
  for (int i = 0; i < 2; ++i) buffer.PushBack(Fuse(i, &left));
  left = 0;
  EXPECT_EQ(ThrownBy([&] { buffer.PopFront(); }), "std::runtime_error: it has burnt down");
  left = 1000;
  EXPECT_EQ(buffer.size(), 1u);
  EXPECT_EQ(buffer.PopFront().number, 1);
}

}  // namespace
}  // namespace weft
