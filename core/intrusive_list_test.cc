// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/intrusive_list.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

struct Item : ListNode {
  explicit Item(int value) : number(value) {}
  int number;
};

// Takes all out of `list`, in order.
std::vector<int> Drain(List<Item>& list) {
  std::vector<int> numbers;
  while (Item* item = list.PopFront()) numbers.push_back(item->number);
  return numbers;
}

TEST(IntrusiveListTest, IsFirstInFirstOut) {
  Item one(1), two(2), three(3);
  List<Item> list;
  list.PushBack(&two);
  list.PushBack(&three);
  list.PushFront(&one);

  EXPECT_EQ(list.CountSlowly(), 3u);
  EXPECT_EQ(list.front(), &one);
  EXPECT_EQ(list.back(), &three);
  EXPECT_EQ(list.Next(&one), &two);
  EXPECT_EQ(list.Next(&three), nullptr);
  EXPECT_THAT(Drain(list), ElementsAre(1, 2, 3));
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(one.is_linked());
}

TEST(IntrusiveListTest, AnElementLeavesByItself) {
  Item one(1), three(3);
  auto two = std::make_unique<Item>(2);
  List<Item> list;
  for (Item* item : {&one, two.get(), &three}) list.PushBack(item);
  one.Unlink();
  one.Unlink();
  two.reset();

  EXPECT_THAT(Drain(list), ElementsAre(3));
}

TEST(IntrusiveListTest, AnElementTakesThePlaceOfAnother) {
  Item one(1), two(2), three(3), four(4);
  List<Item> list;
  for (Item* item : {&one, &two, &three}) list.PushBack(item);
  two.ReplaceBy(&four);

  EXPECT_FALSE(two.is_linked());
  EXPECT_THAT(Drain(list), ElementsAre(1, 4, 3));
}

TEST(IntrusiveListTest, SplicesInOrder) {
  Item one(1), two(2), three(3);
  List<Item> list, more, none;
  list.PushBack(&one);
  more.PushBack(&two);
  more.PushBack(&three);
  list.Splice(&more);
  list.Splice(&none);

  EXPECT_TRUE(more.empty());
  EXPECT_THAT(Drain(list), ElementsAre(1, 2, 3));
}

TEST(IntrusiveListTest, LetsGoOfItsElementsAtItsEnd) {
  Item one(1);
  {
    List<Item> list;
    list.PushBack(&one);
  }

  EXPECT_FALSE(one.is_linked());
}

}  // namespace
}  // namespace weft
