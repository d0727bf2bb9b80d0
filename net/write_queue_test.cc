// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/write_queue.h"

#include <algorithm>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace weft::internal {
namespace {

std::string Text(const WriteQueue& queue) {
  std::string text;
  Buffer pieces[100];
  const size_t count = queue.Pieces(pieces, 100);
  for (size_t i = 0; i < count; ++i) {
    text.append(static_cast<const char*>(pieces[i].data), pieces[i].size);
  }
  return text;
}

TEST(WriteQueueTest, SmallWritesLieTogether) {
  SlabPool pool;
  WriteQueue queue;
  EXPECT_TRUE(queue.Append("ab", &pool));
  EXPECT_TRUE(queue.Append("cd", &pool));

  Buffer pieces[2];
  EXPECT_EQ(queue.Pieces(pieces, 2), 1u);
  EXPECT_EQ(Text(queue), "abcd");
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

TEST(WriteQueueTest, HoldsNoSlabWhenItIsEmpty) {
  SlabPool pool;
  WriteQueue queue;
  EXPECT_TRUE(queue.Append(std::string(200000, 'x'), &pool));
  EXPECT_EQ(pool.outstanding_count(), 4u);

  queue.Consume(200000);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

TEST(WriteQueueTest, WhatIsThereDoesNotMoveWhenMoreComes) {
  SlabPool pool;
  WriteQueue queue;
  EXPECT_TRUE(queue.Append("first", &pool));
  Buffer first;
  queue.Pieces(&first, 1);

  EXPECT_TRUE(queue.Append(std::string(100000, 'x'), &pool));

  Buffer again;
  queue.Pieces(&again, 1);
  EXPECT_EQ(first.data, again.data);
  queue.Clear();
  EXPECT_EQ(queue.size(), 0u);
}

// Against a string, in random steps.
TEST(WriteQueueTest, AgreesWithAString) {
  std::mt19937 random(1);
  SlabPool pool(2048);
  WriteQueue queue;
  std::string model;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && model.size() < 20000) {
      std::string piece(random() % 3000, '\0');
      for (char& c : piece) c = static_cast<char>(random());
      model += piece;
      ASSERT_TRUE(queue.Append(piece, &pool));
    } else if (!model.empty()) {
      const size_t count = 1 + random() % std::min<size_t>(model.size(), 4000);
      model.erase(0, count);
      queue.Consume(count);
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(Text(queue), model);
  }
}

}  // namespace
}  // namespace weft::internal
