// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/read_buffer.h"

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace weft::internal {
namespace {

void Append(ReadBuffer* buffer, SlabPool* pool, std::string_view data) {
  Slab slab = pool->Take();
  std::memcpy(slab.data(), data.data(), data.size());
  buffer->Append(std::move(slab), data.size());
}

TEST(ReadBufferTest, HoldsNoMemoryWhileItIsEmpty) {
  SlabPool pool(64);
  ReadBuffer buffer;
  EXPECT_TRUE(buffer.empty());

  Append(&buffer, &pool, "abc");
  EXPECT_EQ(pool.outstanding_count(), 1u);
  EXPECT_EQ(buffer.unread(), "abc");

  buffer.Consume(2);
  EXPECT_EQ(buffer.unread(), "c");
  buffer.Consume(1);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

TEST(ReadBufferTest, WhatFitsStaysInOneSlab) {
  SlabPool pool(64);
  ReadBuffer buffer;
  Append(&buffer, &pool, std::string(40, 'a'));
  buffer.Consume(30);

  Append(&buffer, &pool, std::string(50, 'b'));

  EXPECT_EQ(buffer.unread(), std::string(10, 'a') + std::string(50, 'b'));
  EXPECT_EQ(pool.outstanding_count(), 1u);
}

TEST(ReadBufferTest, WhatIsLongerGoesToTheHeap) {
  SlabPool pool(64);
  ReadBuffer buffer;
  std::string all;
  for (char c = 'a'; c < 'p'; ++c) {
    const std::string piece(33, c);
    all += piece;
    Append(&buffer, &pool, piece);
  }
  EXPECT_EQ(buffer.unread(), all);
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

// Against a string, in random steps.
TEST(ReadBufferTest, AgreesWithAString) {
  std::mt19937 random(1);
  SlabPool pool(64);
  ReadBuffer buffer;
  std::string model;
  for (int i = 0; i < 100000; ++i) {
    if (random() % 2 == 0 && model.size() < 2000) {
      std::string piece(1 + random() % 64, '\0');
      for (char& c : piece) c = static_cast<char>(random());
      model += piece;
      Append(&buffer, &pool, piece);
    } else if (!model.empty()) {
      const size_t count = 1 + random() % std::min<size_t>(model.size(), 100);
      model.erase(0, count);
      buffer.Consume(count);
    }
    ASSERT_EQ(buffer.unread(), model);
  }
}

}  // namespace
}  // namespace weft::internal
