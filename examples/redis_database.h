// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_REDIS_DATABASE_H_
#define WEFT_EXAMPLES_REDIS_DATABASE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "weft/core/time_point.h"
#include "weft/loop/event_loop.h"

namespace weft {

// RedisClient
//
// Who asks, as the database sees it. Its connection takes what it has subscribed to.
class RedisClient {
 public:
  // Sends what nobody asked for just now.
  virtual void Push(std::string_view message) = 0;

  bool wants_to_quit() const { return wants_to_quit_; }

 protected:
  ~RedisClient() = default;

 private:
  friend class RedisDatabase;

  absl::flat_hash_set<std::string> channels_;
  bool wants_to_quit_ = false;
};

// RedisDatabase
//
// Keys and values, and what can be done with them by commands of Redis, in its words. Keys
// with an end each have a timer: arming, cancelling and firing one costs the same however many
// there are.
//
// Threads: belongs to the loop's thread.
class RedisDatabase {
 public:
  explicit RedisDatabase(EventLoop* loop) : loop_(loop) {}
  RedisDatabase(const RedisDatabase&) = delete;
  ~RedisDatabase() { Clear(); }

  // Executes one request, and appends the answer to `*out`. `arguments` begins with the name
  // of the command; if there is none, nothing happens.
  void Execute(RedisClient* client, absl::Span<const std::string_view> arguments, std::string* out);

  // `client` is about to go.
  void Forget(RedisClient* client);

 private:
  using List = std::deque<std::string>;
  using Hash = absl::flat_hash_map<std::string, std::string>;

  // One from which a random member can be taken.
  class Set {
   public:
    bool Add(std::string_view member);
    std::string TakeAt(size_t place);
    size_t size() const { return members_.size(); }

   private:
    std::vector<std::string> members_;
    absl::flat_hash_map<std::string, size_t> places_;
  };

  struct Value {
    std::variant<std::string, List, Set, Hash> data;
    std::optional<TimePoint> end;
    TimerHandle timer;  // If there is an end.
  };

  // A request, and where its answer goes.
  struct Request {
    RedisClient* client;
    absl::Span<const std::string_view> arguments;
    std::string* out;

    std::string_view operator[](size_t i) const { return arguments[i]; }
    size_t size() const { return arguments.size(); }
    void Error(std::string_view text) const;
    void Ok() const;
    void Integer(int64_t value) const;
  };

  struct Command {
    std::string_view name;
    int arity;  // With the name; negative: at least so many.
    void (RedisDatabase::*execute)(const Request& request);
    bool is_for_subscribers = false;
  };
  static const Command kCommands[];
  static const Command* FindCommand(std::string_view name);

  // The value of a key, or null. One whose time has come is not there any more, though its
  // timer may fire only later in this round.
  Value* Find(std::string_view key);
  // The same for one of a type. If it is of another, answers so and returns false.
  template <class T>
  bool FindAs(const Request& request, std::string_view key, T** data);
  // The same, and makes one if there is none.
  template <class T>
  T* FindOrMake(const Request& request, std::string_view key);

  void Store(std::string_view key, std::string_view text);
  void SetEnd(std::string_view key, Value* value, TimePoint end);
  bool Erase(std::string_view key);
  void Clear();
  void Add(const Request& request, std::string_view amount, int sign);
  void PushTo(const Request& request, bool front);
  void PopFrom(const Request& request, bool front);

  void Ping(const Request& request);
  void Echo(const Request& request);
  void SetKey(const Request& request);
  void Get(const Request& request);
  void Del(const Request& request);
  void Exists(const Request& request);
  void Incr(const Request& request) { Add(request, "1", 1); }
  void Decr(const Request& request) { Add(request, "1", -1); }
  void IncrBy(const Request& request) { Add(request, request[2], 1); }
  void DecrBy(const Request& request) { Add(request, request[2], -1); }
  void Expire(const Request& request);
  void Ttl(const Request& request);
  void MSet(const Request& request);
  void MGet(const Request& request);
  void LPush(const Request& request) { PushTo(request, true); }
  void RPush(const Request& request) { PushTo(request, false); }
  void LPop(const Request& request) { PopFrom(request, true); }
  void RPop(const Request& request) { PopFrom(request, false); }
  void LRange(const Request& request);
  void SAdd(const Request& request);
  void SPop(const Request& request);
  void HSet(const Request& request);
  void HGet(const Request& request);
  void FlushAll(const Request& request);
  void DbSize(const Request& request);
  void Subscribe(const Request& request);
  void Unsubscribe(const Request& request);
  void Publish(const Request& request);
  void CommandInfo(const Request& request);
  void Config(const Request& request);
  void Info(const Request& request);
  void Quit(const Request& request);

  EventLoop* loop_;
  absl::flat_hash_map<std::string, Value> values_;
  absl::flat_hash_map<std::string, absl::flat_hash_set<RedisClient*>> channels_;
  std::minstd_rand random_;
};

}  // namespace weft

#endif  // WEFT_EXAMPLES_REDIS_DATABASE_H_
