// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// HTTP on a pair of sockets, in virtual time; http_server_test.py has the clients of
// others.

#include "weft/examples/http_connection.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/test_net.h"
#include "weft/poller/poller_wrapper.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpConnectionTest : public NetTest {};

// Says what it was asked.
Coro<HttpResponse> Describe(const HttpRequest& request) {
  if (request.path() == "/slow") co_await Sleep(absl::Seconds(5));
  if (request.path() == "/fail") throw std::runtime_error("on purpose");
  co_return HttpResponse(
      200, absl::StrCat(request.method(), " ", request.target(), " [", request.body(), "]\n"));
}

// As a server does: the service is kept as long as the connection.
Coro<> Serve(std::shared_ptr<HttpService> service, Connection connection) {
  co_await service->Serve(std::move(connection.reader), std::move(connection.writer));
}

// A service, and a client of it.
class Exchange {
 public:
  explicit Exchange(HttpOptions options = HttpOptions(), HttpHandler handler = Describe)
      : service_(std::make_shared<HttpService>(std::move(handler), options)),
        serving_(CreateTask(Serve(service_, std::move(sockets_.b)))) {}

  HttpService& service() { return *service_; }
  // Done when the service has ended the connection.
  Task<void>& serving() { return serving_; }

  void Send(std::string_view text) { sockets_.a.writer.Write(text); }
  void HangUp() { sockets_.a.writer.WriteEof(); }

  // The next response, with its body; what has come, if the connection ends.
  Coro<std::string> Receive() {
    StreamReader& reader = sockets_.a.reader;
    absl::StatusOr<std::string> head = co_await reader.ReadUntil("\r\n\r\n");
    if (!head.ok()) {
      const absl::Span<const char> rest = reader.Unread();
      co_return std::string(rest.data(), rest.size());
    }
    size_t size = 0;
    for (std::string_view line : absl::StrSplit(*head, "\r\n")) {
      if (!absl::ConsumePrefix(&line, "Content-Length: ")) continue;
      EXPECT_TRUE(absl::SimpleAtoi(line, &size));
    }
    absl::StatusOr<std::string> body = co_await reader.ReadExactly(static_cast<int64_t>(size));
    EXPECT_TRUE(body.ok()) << body.status();
    co_return *head + *body;
  }

  // All up to the end of the connection.
  Coro<std::string> ReceiveAll() {
    absl::StatusOr<std::string> all = co_await sockets_.a.reader.Read();
    co_return *std::move(all);
  }

  Coro<std::string> Ask(std::string question) {
    Send(question);
    co_return co_await Receive();
  }

 private:
  StreamPair sockets_;
  std::shared_ptr<HttpService> service_;
  Task<void> serving_;
};

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

WEFT_TEST_F(HttpConnectionTest, AConnectionServesOneRequestAfterTheOther) {
  Exchange client;
  const std::vector<std::string> paths = {"/a", "/b?c=d"};
  for (const std::string& path : paths) {
    std::string response =
        co_await client.Ask(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(response, HasSubstr("\r\nDate: "));
    EXPECT_THAT(response, Not(HasSubstr("Connection:")));
    EXPECT_THAT(response, EndsWith(absl::StrCat("GET ", path, " []\n")));
  }
  EXPECT_EQ(client.service().requests(), 2);
}

WEFT_TEST_F(HttpConnectionTest, HoweverTheBytesAreCut) {
  const std::string question =
      "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\nTrailer: t\r\n\r\n";
  for (size_t size = 1; size < 20; ++size) {
    Exchange client;
    for (size_t at = 0; at < question.size(); at += size) {
      client.Send(question.substr(at, size));
      co_await Rounds(3);
    }
    WEFT_EXPECT_THAT(co_await client.Receive(), EndsWith("POST /a [hello, world]\n"));
  }
}

// Counts what is sent.
struct CountingPoller : PollerWrapper {
  StartResult Start(Operation* op) override {
    if (op->opcode == OpCode::kSend || op->opcode == OpCode::kSendMsg) ++sends;
    return PollerWrapper::Start(op);
  }
  int sends = 0;
};

TEST_F(HttpConnectionTest, TheAnswersOfABatchLeaveInOneCall) {
  CountingPoller poller;
  RunOptions options;
  options.environment.poller = &poller;
  const auto ask = [&poller]() -> Coro<> {
    Exchange client;
    std::string batch;
    for (int i = 0; i < 16; ++i) absl::StrAppend(&batch, kGet);
    client.Send(batch);
    for (int i = 0; i < 16; ++i) {
      WEFT_EXPECT_THAT(co_await client.Receive(), StartsWith("HTTP/1.1 200 OK\r\n"));
    }
    EXPECT_EQ(poller.sends, 2);  // The batch is the other.
  };

  weft::Run(ask(), options);
}

WEFT_TEST_F(HttpConnectionTest, AHeadHasNoBody) {
  Exchange client;
  client.Send("HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

  std::string response = co_await client.ReceiveAll();

  EXPECT_THAT(response, HasSubstr("\r\nContent-Length: 11\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\n"));
}

WEFT_TEST_F(HttpConnectionTest, TheClientSaysWhetherTheConnectionIsKept) {
  Exchange closing;
  closing.Send(absl::StrCat("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  WEFT_EXPECT_THAT(co_await closing.ReceiveAll(), HasSubstr("\r\nConnection: close\r\n"));

  Exchange old;
  old.Send("GET / HTTP/1.0\r\n\r\n");
  WEFT_EXPECT_THAT(co_await old.ReceiveAll(), HasSubstr("\r\nConnection: close\r\n"));

  Exchange kept;
  for (int i = 0; i < 2; ++i) {
    WEFT_EXPECT_THAT(co_await kept.Ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
                     HasSubstr("\r\nConnection: keep-alive\r\n"));
  }
}

// Where it ends, somebody in between may see otherwise, who knows no coding.
WEFT_TEST_F(HttpConnectionTest, AnOldRequestWithACodingIsTheLast) {
  Exchange client;
  client.Send(
      "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  std::string response = co_await client.ReceiveAll();
  EXPECT_THAT(response, AllOf(HasSubstr("\r\nConnection: close\r\n"), HasSubstr("[abc]"),
                              Not(HasSubstr("GET"))));
}

WEFT_TEST_F(HttpConnectionTest, TheTargetMayBeAWholeUrl) {
  struct Case {
    std::string target, path;
  };
  const std::vector<Case> cases = {{"/path?of=http://a/b", "/path"},
                                   {"/://a/b", "/://a/b"},
                                   {"http://a/path?query", "/path"},
                                   {"http://a:80/path/", "/path/"},
                                   {"http://a", "/"},
                                   {"http://a?query=/", "/"},
                                   {"*", "*"}};
  const auto show_path = [](const HttpRequest& request) -> Coro<HttpResponse> {
    co_return HttpResponse(200, std::string(request.path()));
  };
  for (const Case& one : cases) {
    Exchange client(HttpOptions(), show_path);
    std::string response =
        co_await client.Ask(absl::StrCat("OPTIONS ", one.target, " HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_THAT(response, EndsWith("\r\n\r\n" + one.path)) << one.target;
  }
}

WEFT_TEST_F(HttpConnectionTest, WhoSendsNoMoreIsStillAnswered) {
  Exchange client;
  client.Send(kGet);
  client.HangUp();

  WEFT_EXPECT_THAT(co_await client.ReceiveAll(), EndsWith("GET / []\n"));
  co_await client.serving();
}

// -- Expect.

constexpr std::string_view kExpecting =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";

WEFT_TEST_F(HttpConnectionTest, WhoExpectsItIsToldToGoOn) {
  Exchange client;
  WEFT_EXPECT_EQ(co_await client.Ask(std::string(kExpecting)), "HTTP/1.1 100 Continue\r\n\r\n");
  WEFT_EXPECT_THAT(co_await client.Ask("abc"), EndsWith("POST / [abc]\n"));
}

WEFT_TEST_F(HttpConnectionTest, AndIsNotIfTheBodyIsThere) {
  Exchange client;
  WEFT_EXPECT_THAT(co_await client.Ask(absl::StrCat(kExpecting, "abc")),
                   StartsWith("HTTP/1.1 200 OK\r\n"));
}

WEFT_TEST_F(HttpConnectionTest, OrIfTheBodyIsNotWanted) {
  HttpOptions options;
  options.limits.body = 2;
  Exchange client(options);
  WEFT_EXPECT_THAT(co_await client.Ask(std::string(kExpecting)), StartsWith("HTTP/1.1 413 "));
}

// -- What is wrong.

WEFT_TEST_F(HttpConnectionTest, WhatIsWrongIsAnsweredAndTheConnectionEnds) {
  HttpOptions options;
  options.limits.head = 200;
  options.limits.body = 10;
  struct Case {
    std::string request;
    int status;
  };
  const std::string host = "Host: a\r\n";
  const std::vector<Case> cases = {
      {"hello\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nExpect: a miracle\r\n\r\n", 417},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello, worl", 413},
      {absl::StrCat("GET / HTTP/1.1\r\nHost: a\r\nX: ", std::string(200, 'x')), 431},
      {absl::StrCat("GET /", std::string(200, 'x')), 431},
      {absl::StrCat("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
                    std::string(200, 'x')),
       431},
  };
  for (const Case& wrong : cases) {
    Exchange client(options);
    client.Send(wrong.request);
    std::string response = co_await client.ReceiveAll();
    EXPECT_THAT(response, AllOf(StartsWith(absl::StrCat("HTTP/1.1 ", wrong.status, " ")),
                                HasSubstr("\r\nConnection: close\r\n")))
        << wrong.request;
  }
}

WEFT_TEST_F(HttpConnectionTest, WhatCameBeforeTheMistakeIsAnswered) {
  Exchange client;
  client.Send(absl::StrCat(kGet, kGet, "nonsense\r\n\r\n", kGet));

  std::string all = co_await client.ReceiveAll();

  std::vector<std::string> statuses;
  for (std::string_view line : absl::StrSplit(all, "\r\n")) {
    // A body ends without one.
    for (std::string_view part : absl::StrSplit(line, '\n')) {
      if (absl::StartsWith(part, "HTTP/1.1 ")) statuses.emplace_back(part.substr(9, 3));
    }
  }
  EXPECT_THAT(statuses, ElementsAre("200", "200", "400"));
}

WEFT_TEST_F(HttpConnectionTest, AConnectionThatEndsInTheMidstOfARequestIsWrongToo) {
  Exchange client;
  client.Send("GET / HTTP/1.1\r\nHos");
  client.HangUp();

  WEFT_EXPECT_THAT(co_await client.ReceiveAll(), StartsWith("HTTP/1.1 400 "));
}

WEFT_TEST_F(HttpConnectionTest, AHandlerThatFailsIsReportedAndAnswered) {
  std::string reported;
  GetRunningLoop().SetExceptionHandler([&](EventLoop&, const ExceptionContext& context) {
    reported = DescribeException(context.exception);
  });
  Exchange client;

  WEFT_EXPECT_THAT(co_await client.Ask("GET /fail HTTP/1.1\r\nHost: a\r\n\r\n"),
                   StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(reported, HasSubstr("on purpose"));
  WEFT_EXPECT_THAT(co_await client.Ask(std::string(kGet)), StartsWith("HTTP/1.1 200 "));
}

// -- Time.

absl::Duration Since(TimePoint start) { return GetRunningLoop().Time() - start; }

HttpOptions Timeouts() {
  HttpOptions options;
  options.idle_timeout = absl::Seconds(30);
  options.head_timeout = absl::Seconds(5);
  options.body_timeout = absl::Seconds(7);
  return options;
}

WEFT_TEST_F(HttpConnectionTest, AnIdleConnectionIsClosedWithoutAWord) {
  Exchange client(Timeouts());
  WEFT_EXPECT_THAT(co_await client.Ask(std::string(kGet)), StartsWith("HTTP/1.1 200 "));
  const TimePoint start = GetRunningLoop().Time();

  WEFT_EXPECT_EQ(co_await client.ReceiveAll(), "");

  EXPECT_GE(Since(start), absl::Seconds(29));
  EXPECT_LE(Since(start), absl::Seconds(31));
}

// Each byte comes in time, and all of them too late. The answer.
Coro<std::string> Drip(Exchange& client, std::string text) {
  Task<std::string> answer = CreateTask(client.Receive());
  for (char c : text) {
    client.Send(std::string_view(&c, 1));
    co_await Sleep(absl::Seconds(1));
    if (answer.Done()) break;
  }
  co_return co_await std::move(answer);
}

WEFT_TEST_F(HttpConnectionTest, AHeadThatDripsIsEnded) {
  Exchange client(Timeouts());
  const TimePoint start = GetRunningLoop().Time();

  WEFT_EXPECT_THAT(co_await Drip(client, std::string(kGet)), StartsWith("HTTP/1.1 408 "));

  EXPECT_GE(Since(start), absl::Seconds(5));
  EXPECT_LE(Since(start), absl::Seconds(7));
}

WEFT_TEST_F(HttpConnectionTest, ABodyThatDripsIsEnded) {
  Exchange client(Timeouts());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
  const TimePoint start = GetRunningLoop().Time();

  WEFT_EXPECT_THAT(co_await Drip(client, std::string(100, 'x')), StartsWith("HTTP/1.1 408 "));

  EXPECT_GE(Since(start), absl::Seconds(7));
  EXPECT_LE(Since(start), absl::Seconds(9));
}

WEFT_TEST_F(HttpConnectionTest, WhoIsSentAwayMayGoOnForAWhile) {
  HttpOptions options = Timeouts();
  options.linger = absl::Seconds(3);
  Exchange client(options);
  client.Send("nonsense\r\n\r\n");
  const TimePoint start = GetRunningLoop().Time();

  WEFT_EXPECT_THAT(co_await client.Receive(), StartsWith("HTTP/1.1 400 "));
  client.Send("and more");
  co_await client.serving();

  EXPECT_GE(Since(start), absl::Seconds(3));
  EXPECT_LE(Since(start), absl::Seconds(4));
}

// -- The end.

WEFT_TEST_F(HttpConnectionTest, WhenItStopsIdleConnectionsAreClosedAtOnce) {
  Exchange client;
  WEFT_EXPECT_THAT(co_await client.Ask(std::string(kGet)), Not(HasSubstr("Connection:")));
  co_await Rounds(3);
  const TimePoint start = GetRunningLoop().Time();

  client.service().Stop();

  WEFT_EXPECT_EQ(co_await client.ReceiveAll(), "");
  EXPECT_LT(Since(start), absl::Seconds(1));
}

WEFT_TEST_F(HttpConnectionTest, WhenItStopsWhatIsBeingAnsweredIsAnsweredForTheLastTime) {
  Exchange client;
  client.Send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  co_await Sleep(absl::Seconds(1));

  client.service().Stop();

  WEFT_EXPECT_THAT(co_await client.ReceiveAll(),
                   AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("GET /slow []\n")));
}

WEFT_TEST_F(HttpConnectionTest, WhenItStopsARequestThatHasBegunMayCome) {
  Exchange client;
  client.Send(kGet.substr(0, 20));
  co_await Sleep(absl::Seconds(1));

  client.service().Stop();
  co_await Sleep(absl::Seconds(1));
  client.Send(kGet.substr(20));

  WEFT_EXPECT_THAT(co_await client.ReceiveAll(),
                   AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("GET / []\n")));
}

}  // namespace
}  // namespace weft
