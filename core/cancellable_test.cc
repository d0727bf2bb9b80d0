// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/cancellable.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;

// Asks all that is below it, in order, and answers with the best; a leaf has an
// answer of its own.
class Node final : public Cancellable {
 public:
  Node(std::vector<std::string>* log, std::string name, CancelAnswer answer)
      : log_(log), name_(std::move(name)), answer_(answer) {}

  void Add(Node* below) { below_.push_back(below); }

  Step BeginCancel(const std::exception_ptr&) override {
    if (log_ != nullptr) log_->push_back(name_);
    if (below_.empty()) return {nullptr, answer_};
    return {below_[0], CancelAnswer::kAccepted};
  }
  Step ContinueCancel(size_t count, CancelAnswer answers) override {
    if (count < below_.size()) return {below_[count], answers};
    return {nullptr, answers};
  }

 private:
  std::vector<std::string>* log_;
  std::string name_;
  CancelAnswer answer_;
  std::vector<Node*> below_;
};

class CancellableTest : public ::testing::Test {
 protected:
  Node Make(std::string name, CancelAnswer answer = CancelAnswer::kAccepted) {
    return Node(&log_, std::move(name), answer);
  }
  std::vector<std::string> log_;
};

TEST_F(CancellableTest, ATreeIsAskedInItsOrder) {
  Node root = Make("root"), left = Make("left"), right = Make("right"), leaf = Make("leaf");
  root.Add(&left);
  root.Add(&right);
  left.Add(&leaf);

  EXPECT_EQ(RequestCancel(&root, nullptr), CancelAnswer::kAccepted);
  EXPECT_THAT(log_, ElementsAre("root", "left", "leaf", "right"));
}

TEST_F(CancellableTest, TheBestAnswerCounts) {
  using enum CancelAnswer;
  for (const auto& [first, second, expected] :
       std::vector<std::tuple<CancelAnswer, CancelAnswer, CancelAnswer>>{
           {kRefused, kRefused, kRefused},
           {kRefused, kAccepted, kAccepted},
           {kAccepted, kRing, kAccepted},
           {kRing, kRefused, kRing}}) {
    Node root = Make("root"), a = Make("a", first), b = Make("b", second);
    root.Add(&a);
    root.Add(&b);

    EXPECT_EQ(RequestCancel(&root, nullptr), expected);
  }
}

TEST_F(CancellableTest, DepthNeedsNoStack) {
  std::vector<std::unique_ptr<Node>> chain;
  for (int i = 0; i < 1'000'000; ++i) {
    chain.push_back(std::make_unique<Node>(nullptr, "", CancelAnswer::kAccepted));
    if (i > 0) chain[i - 1]->Add(chain[i].get());
  }

  EXPECT_EQ(RequestCancel(chain[0].get(), nullptr), CancelAnswer::kAccepted);
}

}  // namespace
}  // namespace weft::internal
