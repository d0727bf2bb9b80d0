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
  SlabPool pool(4096);
  ReadBuffer buffer;
  EXPECT_TRUE(buffer.empty());

  Append(&buffer, &pool, std::string(2000, 'a'));
  EXPECT_EQ(pool.outstanding_count(), 1u);
  EXPECT_EQ(buffer.unread(), std::string(2000, 'a'));

  buffer.Consume(1999);
  EXPECT_EQ(buffer.unread(), "a");
  buffer.Consume(1);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

// So that a thousand connections with a short message each need one slab.
TEST(ReadBufferTest, AShortMessageKeepsNoSlab) {
  SlabPool pool(4096);
  ReadBuffer buffer;
  Append(&buffer, &pool, "abc");
  Append(&buffer, &pool, "def");
  EXPECT_EQ(buffer.unread(), "abcdef");
  EXPECT_EQ(pool.outstanding_count(), 0u);

  Append(&buffer, &pool, std::string(2000, 'x'));
  EXPECT_EQ(buffer.unread(), "abcdef" + std::string(2000, 'x'));
  EXPECT_EQ(pool.outstanding_count(), 1u);
}

TEST(ReadBufferTest, WhatFitsStaysInOneSlab) {
  SlabPool pool(4096);
  ReadBuffer buffer;
  Append(&buffer, &pool, std::string(3000, 'a'));
  buffer.Consume(2990);

  Append(&buffer, &pool, std::string(3500, 'b'));

  EXPECT_EQ(buffer.unread(), std::string(10, 'a') + std::string(3500, 'b'));
  EXPECT_EQ(pool.outstanding_count(), 1u);
}

TEST(ReadBufferTest, WhatIsLongerGoesToTheHeap) {
  SlabPool pool(4096);
  ReadBuffer buffer;
  std::string all;
  for (char c = 'a'; c < 'p'; ++c) {
    const std::string piece(2100, c);
    all += piece;
    Append(&buffer, &pool, piece);
  }
  EXPECT_EQ(buffer.unread(), all);
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

// Against a string, in random steps.
TEST(ReadBufferTest, AgreesWithAString) {
  std::mt19937 random(1);
  SlabPool pool(2048);
  ReadBuffer buffer;
  std::string model;
  for (int i = 0; i < 30000; ++i) {
    if (random() % 2 == 0 && model.size() < 20000) {
      std::string piece(1 + random() % (random() % 2 == 0 ? 100 : 2048), '\0');
      for (char& c : piece) c = static_cast<char>(random());
      model += piece;
      Append(&buffer, &pool, piece);
    } else if (!model.empty()) {
      const size_t count =
          1 + random() % std::min<size_t>(model.size(), random() % 4 == 0 ? 3000 : 200);
      model.erase(0, count);
      buffer.Consume(count);
    }
    ASSERT_EQ(buffer.unread(), model);
  }
}

}  // namespace
}  // namespace weft::internal
