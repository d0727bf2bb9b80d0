// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/redis_database.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/examples/resp.h"

namespace weft {
namespace {

constexpr std::string_view kSyntaxError = "ERR syntax error";
constexpr std::string_view kNoInteger = "ERR value is not an integer or out of range";
constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

bool ToInteger(std::string_view text, int64_t* value) {
  // What SimpleAtoi() takes besides a number, Redis does not.
  const bool is_plain = !text.empty() && text.front() != '+' &&
                        absl::StripAsciiWhitespace(text).size() == text.size();
  return is_plain && absl::SimpleAtoi(text, value);
}

}  // namespace

const RedisDatabase::Command RedisDatabase::kCommands[] = {
    {"ping", -1, &RedisDatabase::Ping, true},
    {"echo", 2, &RedisDatabase::Echo},
    {"set", -3, &RedisDatabase::SetKey},
    {"get", 2, &RedisDatabase::Get},
    {"del", -2, &RedisDatabase::Del},
    {"exists", -2, &RedisDatabase::Exists},
    {"incr", 2, &RedisDatabase::Incr},
    {"decr", 2, &RedisDatabase::Decr},
    {"incrby", 3, &RedisDatabase::IncrBy},
    {"decrby", 3, &RedisDatabase::DecrBy},
    {"expire", 3, &RedisDatabase::Expire},
    {"ttl", 2, &RedisDatabase::Ttl},
    {"mset", -3, &RedisDatabase::MSet},
    {"mget", -2, &RedisDatabase::MGet},
    {"lpush", -3, &RedisDatabase::LPush},
    {"rpush", -3, &RedisDatabase::RPush},
    {"lpop", -2, &RedisDatabase::LPop},
    {"rpop", -2, &RedisDatabase::RPop},
    {"lrange", 4, &RedisDatabase::LRange},
    {"sadd", -3, &RedisDatabase::SAdd},
    {"spop", -2, &RedisDatabase::SPop},
    {"hset", -4, &RedisDatabase::HSet},
    {"hget", 3, &RedisDatabase::HGet},
    {"flushall", -1, &RedisDatabase::FlushAll},
    {"dbsize", 1, &RedisDatabase::DbSize},
    {"subscribe", -2, &RedisDatabase::Subscribe, true},
    {"unsubscribe", -1, &RedisDatabase::Unsubscribe, true},
    {"publish", 3, &RedisDatabase::Publish},
    {"command", -1, &RedisDatabase::CommandInfo},
    {"config", -2, &RedisDatabase::Config},
    {"info", -1, &RedisDatabase::Info},
    {"quit", -1, &RedisDatabase::Quit, true},
};

const RedisDatabase::Command* RedisDatabase::FindCommand(std::string_view name) {
  static const auto* const commands = [] {
    auto* map = new absl::flat_hash_map<std::string_view, const Command*>;
    for (const Command& command : kCommands) map->emplace(command.name, &command);
    return map;
  }();
  const auto found = commands->find(absl::AsciiStrToLower(name));
  return found == commands->end() ? nullptr : found->second;
}

void RedisDatabase::Request::Error(std::string_view text) const { AppendError(out, text); }
void RedisDatabase::Request::Ok() const { AppendSimple(out, "OK"); }
void RedisDatabase::Request::Integer(int64_t value) const { AppendInteger(out, value); }

void RedisDatabase::Execute(RedisClient* client, absl::Span<const std::string_view> arguments,
                            std::string* out) {
  if (arguments.empty()) return;
  const Request request{client, arguments, out};
  const Command* command = FindCommand(arguments[0]);
  if (command == nullptr) {
    std::string text = absl::StrCat("ERR unknown command '", arguments[0].substr(0, 128),
                                    "', with args beginning with: ");
    for (size_t i = 1; i < arguments.size() && text.size() < 300; ++i) {
      absl::StrAppend(&text, "'", arguments[i].substr(0, 128), "' ");
    }
    return request.Error(text);
  }
  const int count = static_cast<int>(arguments.size());
  if (command->arity < 0 ? count < -command->arity : count != command->arity) {
    return request.Error(
        absl::StrCat("ERR wrong number of arguments for '", command->name, "' command"));
  }
  if (!client->channels_.empty() && !command->is_for_subscribers) {
    return request.Error(absl::StrCat("ERR Can't execute '", command->name,
                                      "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
                                      "RESET are allowed in this context"));
  }
  (this->*command->execute)(request);
}

void RedisDatabase::Forget(RedisClient* client) {
  for (const std::string& channel : client->channels_) {
    const auto found = channels_.find(channel);
    found->second.erase(client);
    if (found->second.empty()) channels_.erase(found);
  }
  client->channels_.clear();
}

// -- Keys

bool RedisDatabase::Set::Add(std::string_view member) {
  if (!places_.try_emplace(member, members_.size()).second) return false;
  members_.emplace_back(member);
  return true;
}

std::string RedisDatabase::Set::TakeAt(size_t place) {
  std::string member = std::move(members_[place]);
  places_.erase(member);
  if (place + 1 < members_.size()) {
    members_[place] = std::move(members_.back());
    places_[members_[place]] = place;
  }
  members_.pop_back();
  return member;
}

RedisDatabase::Value* RedisDatabase::Find(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  if (found->second.end.has_value() && *found->second.end <= loop_->Time()) {
    Erase(key);
    return nullptr;
  }
  return &found->second;
}

template <class T>
bool RedisDatabase::FindAs(const Request& request, std::string_view key, T** data) {
  Value* value = Find(key);
  *data = value == nullptr ? nullptr : std::get_if<T>(&value->data);
  if (value == nullptr || *data != nullptr) return true;
  request.Error(kWrongType);
  return false;
}

template <class T>
T* RedisDatabase::FindOrMake(const Request& request, std::string_view key) {
  T* data;
  if (!FindAs(request, key, &data)) return nullptr;
  if (data != nullptr) return data;
  return &values_[key].data.template emplace<T>();
}

void RedisDatabase::SetEnd(std::string_view key, Value* value, TimePoint end) {
  value->timer.Cancel();
  value->end = end;
  value->timer = loop_->CallAt(end, [this, name = std::string(key)] { Erase(name); });
}

void RedisDatabase::Store(std::string_view key, std::string_view text) {
  Value& value = values_[key];
  if (value.end.has_value()) {
    value.timer.Cancel();
    value.end.reset();
  }
  if (auto* old = std::get_if<std::string>(&value.data)) {
    old->assign(text);
  } else {
    value.data.emplace<std::string>(text);
  }
}

bool RedisDatabase::Erase(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  if (found->second.end.has_value()) found->second.timer.Cancel();  // `key` may go with it.
  values_.erase(found);
  return true;
}

void RedisDatabase::Clear() {
  for (auto& [key, value] : values_) {
    if (value.end.has_value()) value.timer.Cancel();
  }
  values_.clear();
}

// -- Commands

void RedisDatabase::Ping(const Request& request) {
  if (request.size() > 2) {
    return request.Error("ERR wrong number of arguments for 'ping' command");
  }
  const std::string_view text = request.size() == 2 ? request[1] : "";
  if (!request.client->channels_.empty()) {
    AppendArray(request.out, 2);
    AppendBulk(request.out, "pong");
    AppendBulk(request.out, text);
  } else if (request.size() == 2) {
    AppendBulk(request.out, text);
  } else {
    AppendSimple(request.out, "PONG");
  }
}

void RedisDatabase::Echo(const Request& request) { AppendBulk(request.out, request[1]); }

void RedisDatabase::SetKey(const Request& request) {
  bool only_new = false, only_old = false;
  std::optional<TimePoint> end;
  for (size_t i = 3; i < request.size(); ++i) {
    const std::string_view option = request[i];
    const bool is_seconds = absl::EqualsIgnoreCase(option, "ex");
    if (absl::EqualsIgnoreCase(option, "nx") && !only_old) {
      only_new = true;
    } else if (absl::EqualsIgnoreCase(option, "xx") && !only_new) {
      only_old = true;
    } else if ((is_seconds || absl::EqualsIgnoreCase(option, "px")) && !end.has_value() &&
               i + 1 < request.size()) {
      int64_t delay;
      if (!ToInteger(request[++i], &delay)) return request.Error(kNoInteger);
      end = loop_->Time() + (is_seconds ? absl::Seconds(delay) : absl::Milliseconds(delay));
      if (delay <= 0 || *end == TimePoint::InfiniteFuture()) {
        return request.Error("ERR invalid expire time in 'set' command");
      }
    } else {
      return request.Error(kSyntaxError);
    }
  }
  if (only_new || only_old) {
    if ((Find(request[1]) != nullptr) == only_new) return AppendNull(request.out);
  }
  Store(request[1], request[2]);
  if (end.has_value()) SetEnd(request[1], Find(request[1]), *end);
  request.Ok();
}

void RedisDatabase::Get(const Request& request) {
  std::string* text;
  if (!FindAs(request, request[1], &text)) return;
  if (text == nullptr) return AppendNull(request.out);
  AppendBulk(request.out, *text);
}

void RedisDatabase::Del(const Request& request) {
  int64_t count = 0;
  for (const std::string_view key : request.arguments.subspan(1)) {
    if (Find(key) != nullptr && Erase(key)) ++count;
  }
  request.Integer(count);
}

void RedisDatabase::Exists(const Request& request) {
  int64_t count = 0;
  for (const std::string_view key : request.arguments.subspan(1)) {
    if (Find(key) != nullptr) ++count;
  }
  request.Integer(count);
}

void RedisDatabase::Add(const Request& request, std::string_view amount, int sign) {
  int64_t number = 0, change;
  if (!ToInteger(amount, &change)) return request.Error(kNoInteger);
  if (sign < 0 && change == std::numeric_limits<int64_t>::min()) {
    return request.Error("ERR decrement would overflow");
  }
  std::string* text;
  if (!FindAs(request, request[1], &text)) return;
  if (text != nullptr && !ToInteger(*text, &number)) return request.Error(kNoInteger);
  if (__builtin_add_overflow(number, sign * change, &number)) {
    return request.Error("ERR increment or decrement would overflow");
  }
  if (text != nullptr) {
    *text = absl::StrCat(number);  // Its end stays.
  } else {
    Store(request[1], absl::StrCat(number));
  }
  request.Integer(number);
}

void RedisDatabase::Expire(const Request& request) {
  int64_t seconds;
  if (!ToInteger(request[2], &seconds)) return request.Error(kNoInteger);
  const TimePoint end = loop_->Time() + absl::Seconds(seconds);
  if (end == TimePoint::InfiniteFuture()) {
    return request.Error("ERR invalid expire time in 'expire' command");
  }
  Value* value = Find(request[1]);
  if (value == nullptr) return request.Integer(0);
  if (seconds <= 0) {
    Erase(request[1]);
  } else {
    SetEnd(request[1], value, end);
  }
  request.Integer(1);
}

void RedisDatabase::Ttl(const Request& request) {
  const Value* value = Find(request[1]);
  if (value == nullptr) return request.Integer(-2);
  if (!value->end.has_value()) return request.Integer(-1);
  const absl::Duration left = *value->end - loop_->Time();
  request.Integer(absl::ToInt64Seconds(left + absl::Milliseconds(500)));
}

void RedisDatabase::MSet(const Request& request) {
  if (request.size() % 2 == 0) {
    return request.Error("ERR wrong number of arguments for 'mset' command");
  }
  for (size_t i = 1; i < request.size(); i += 2) Store(request[i], request[i + 1]);
  request.Ok();
}

void RedisDatabase::MGet(const Request& request) {
  AppendArray(request.out, request.size() - 1);
  for (const std::string_view key : request.arguments.subspan(1)) {
    Value* value = Find(key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
    if (text != nullptr) {
      AppendBulk(request.out, *text);
    } else {
      AppendNull(request.out);
    }
  }
}

void RedisDatabase::PushTo(const Request& request, bool front) {
  List* list = FindOrMake<List>(request, request[1]);
  if (list == nullptr) return;
  for (const std::string_view element : request.arguments.subspan(2)) {
    if (front) {
      list->emplace_front(element);
    } else {
      list->emplace_back(element);
    }
  }
  request.Integer(static_cast<int64_t>(list->size()));
}

void RedisDatabase::PopFrom(const Request& request, bool front) {
  int64_t count = 1;
  const bool has_count = request.size() == 3;
  if (request.size() > 3) return request.Error(kSyntaxError);
  if (has_count && (!ToInteger(request[2], &count) || count < 0)) {
    return request.Error("ERR value is out of range, must be positive");
  }
  List* list;
  if (!FindAs(request, request[1], &list)) return;
  if (list == nullptr) return has_count ? AppendNullArray(request.out) : AppendNull(request.out);
  count = std::min(count, static_cast<int64_t>(list->size()));
  if (has_count) AppendArray(request.out, static_cast<size_t>(count));
  for (; count > 0; --count) {
    AppendBulk(request.out, front ? list->front() : list->back());
    if (front) {
      list->pop_front();
    } else {
      list->pop_back();
    }
  }
  if (list->empty()) Erase(request[1]);
}

void RedisDatabase::LRange(const Request& request) {
  int64_t first, last;
  if (!ToInteger(request[2], &first) || !ToInteger(request[3], &last)) {
    return request.Error(kNoInteger);
  }
  List* list;
  if (!FindAs(request, request[1], &list)) return;
  const int64_t size = list == nullptr ? 0 : static_cast<int64_t>(list->size());
  // Negative ones count from the end.
  if (first < 0) first = std::max<int64_t>(0, size + first);
  last = std::min(last < 0 ? size + last : last, size - 1);
  if (first > last) return AppendArray(request.out, 0);
  AppendArray(request.out, static_cast<size_t>(last - first + 1));
  for (int64_t i = first; i <= last; ++i) {
    AppendBulk(request.out, (*list)[static_cast<size_t>(i)]);
  }
}

void RedisDatabase::SAdd(const Request& request) {
  Set* set = FindOrMake<Set>(request, request[1]);
  if (set == nullptr) return;
  int64_t count = 0;
  for (const std::string_view member : request.arguments.subspan(2)) count += set->Add(member);
  request.Integer(count);
}

void RedisDatabase::SPop(const Request& request) {
  int64_t count = 1;
  const bool has_count = request.size() == 3;
  if (request.size() > 3) return request.Error(kSyntaxError);
  if (has_count && (!ToInteger(request[2], &count) || count < 0)) {
    return request.Error("ERR value is out of range, must be positive");
  }
  Set* set;
  if (!FindAs(request, request[1], &set)) return;
  if (set == nullptr) return has_count ? AppendArray(request.out, 0) : AppendNull(request.out);
  count = std::min(count, static_cast<int64_t>(set->size()));
  if (has_count) AppendArray(request.out, static_cast<size_t>(count));
  for (; count > 0; --count) {
    std::uniform_int_distribution<size_t> place(0, set->size() - 1);
    AppendBulk(request.out, set->TakeAt(place(random_)));
  }
  if (set->size() == 0) Erase(request[1]);
}

void RedisDatabase::HSet(const Request& request) {
  if (request.size() % 2 != 0) {
    return request.Error("ERR wrong number of arguments for 'hset' command");
  }
  Hash* hash = FindOrMake<Hash>(request, request[1]);
  if (hash == nullptr) return;
  int64_t count = 0;
  for (size_t i = 2; i < request.size(); i += 2) {
    const auto [field, is_new] = hash->try_emplace(request[i]);
    field->second.assign(request[i + 1]);
    count += is_new;
  }
  request.Integer(count);
}

void RedisDatabase::HGet(const Request& request) {
  Hash* hash;
  if (!FindAs(request, request[1], &hash)) return;
  if (hash == nullptr) return AppendNull(request.out);
  const auto field = hash->find(request[2]);
  if (field == hash->end()) return AppendNull(request.out);
  AppendBulk(request.out, field->second);
}

void RedisDatabase::FlushAll(const Request& request) {
  Clear();
  request.Ok();
}

void RedisDatabase::DbSize(const Request& request) {
  request.Integer(static_cast<int64_t>(values_.size()));
}

// -- Publishing

void RedisDatabase::Subscribe(const Request& request) {
  for (const std::string_view channel : request.arguments.subspan(1)) {
    request.client->channels_.emplace(channel);
    channels_[channel].insert(request.client);
    AppendArray(request.out, 3);
    AppendBulk(request.out, "subscribe");
    AppendBulk(request.out, channel);
    request.Integer(static_cast<int64_t>(request.client->channels_.size()));
  }
}

void RedisDatabase::Unsubscribe(const Request& request) {
  absl::flat_hash_set<std::string>& own = request.client->channels_;
  std::vector<std::string> names(request.arguments.begin() + 1, request.arguments.end());
  if (names.empty()) names.assign(own.begin(), own.end());
  for (const std::string& channel : names) {
    if (own.erase(channel) != 0) {
      const auto found = channels_.find(channel);
      found->second.erase(request.client);
      if (found->second.empty()) channels_.erase(found);
    }
    AppendArray(request.out, 3);
    AppendBulk(request.out, "unsubscribe");
    AppendBulk(request.out, channel);
    request.Integer(static_cast<int64_t>(own.size()));
  }
  if (names.empty()) {
    AppendArray(request.out, 3);
    AppendBulk(request.out, "unsubscribe");
    AppendNull(request.out);
    request.Integer(0);
  }
}

void RedisDatabase::Publish(const Request& request) {
  const auto found = channels_.find(request[1]);
  if (found == channels_.end()) return request.Integer(0);
  std::string message;
  AppendArray(&message, 3);
  AppendBulk(&message, "message");
  AppendBulk(&message, request[1]);
  AppendBulk(&message, request[2]);
  for (RedisClient* client : found->second) client->Push(message);
  request.Integer(static_cast<int64_t>(found->second.size()));
}

// -- What the tools of Redis ask for

void RedisDatabase::CommandInfo(const Request& request) {
  if (request.size() > 1 && absl::EqualsIgnoreCase(request[1], "count")) {
    return request.Integer(static_cast<int64_t>(std::size(kCommands)));
  }
  if (request.size() > 1) return AppendArray(request.out, 0);  // DOCS: there are none.
  AppendArray(request.out, std::size(kCommands));
  for (const Command& command : kCommands) {
    AppendArray(request.out, 6);
    AppendBulk(request.out, command.name);
    request.Integer(command.arity);
    AppendArray(request.out, 0);
    for (int i = 0; i < 3; ++i) request.Integer(0);  // Where its keys are: not told.
  }
}

void RedisDatabase::Config(const Request& request) {
  if (!absl::EqualsIgnoreCase(request[1], "get")) {
    return request.Error(absl::StrCat("ERR unknown subcommand '", request[1].substr(0, 128),
                                      "'. Only GET is served."));
  }
  static constexpr std::pair<std::string_view, std::string_view> kSettings[] = {
      {"appendonly", "no"},
      {"save", ""},
  };
  size_t count = 0;
  std::string settings;
  for (const auto& [name, value] : kSettings) {
    for (const std::string_view wanted : request.arguments.subspan(2)) {
      if (wanted != "*" && !absl::EqualsIgnoreCase(wanted, name)) continue;
      AppendBulk(&settings, name);
      AppendBulk(&settings, value);
      count += 2;
      break;
    }
  }
  AppendArray(request.out, count);
  request.out->append(settings);
}

void RedisDatabase::Info(const Request& request) {
  size_t ends = 0;
  for (const auto& [key, value] : values_) ends += value.end.has_value();
  std::string text =
      absl::StrCat("# Server\r\nredis_mode:standalone\r\nserver_name:redis_mini\r\n",
                   "multiplexing_api:", loop_->poller_name(), "\r\n", "\r\n# Keyspace\r\n");
  if (!values_.empty()) {
    absl::StrAppend(&text, "db0:keys=", values_.size(), ",expires=", ends, ",avg_ttl=0\r\n");
  }
  AppendBulk(request.out, text);
}

void RedisDatabase::Quit(const Request& request) {
  request.client->wants_to_quit_ = true;
  request.Ok();
}

}  // namespace weft
