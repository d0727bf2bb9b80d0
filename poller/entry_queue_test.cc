// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/entry_queue.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;

struct Entry {
  Entry* next = nullptr;
};
using Queue = EntryQueue<Entry, &Entry::next>;

std::vector<Entry*> PopAll(Queue* queue) {
  std::vector<Entry*> all;
  while (Entry* entry = queue->Pop()) all.push_back(entry);
  return all;
}

TEST(EntryQueueTest, GivesBackInTheOrderOfPushingAndEachOnce) {
  Entry a, b, c;
  Queue queue;
  for (Entry* entry : {&b, &a, &b, &c, &c}) queue.Push(entry);

  EXPECT_EQ(queue.back(), &c);
  EXPECT_THAT(PopAll(&queue), ElementsAre(&b, &a, &c));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.back(), nullptr);
}

TEST(EntryQueueTest, SaysWhoIsInIt) {
  Entry a, b;
  Queue queue;
  queue.Push(&a);

  EXPECT_TRUE(Queue::Has(&a));
  EXPECT_FALSE(Queue::Has(&b));

  queue.Pop();

  EXPECT_FALSE(Queue::Has(&a));
}

TEST(EntryQueueTest, OneThatWasTakenOutMayComeAgain) {
  Entry a, b;
  Queue queue;
  queue.Push(&a);
  queue.Push(&b);
  queue.Pop();
  queue.Push(&a);

  EXPECT_THAT(PopAll(&queue), ElementsAre(&b, &a));
}

}  // namespace
}  // namespace weft::internal
