// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_FLAGS_H_
#define WEFT_EXAMPLES_FLAGS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Flags
//
// The command line of an example: `--name=value`, `--name value`, for a bool
// `--name`; `--help` prints what there is.
//
//   uint16_t port = 7777;
//   Flags flags("echo_server");
//   flags.Add("port", &port, "where to listen; 0 picks a free one");
//   std::vector<std::string> others = flags.Parse(argc, argv);
//
// What is wrong is named in one line on stderr, and the exit code is 2.
class Flags {
 public:
  // `usage` begins with the program's name: "traces [NAME...]".
  explicit Flags(std::string usage) : usage_(std::move(usage)) {}

  // What `*value` holds is the default. It must outlive Parse().
  void Add(std::string name, std::string* value, std::string help);
  void Add(std::string name, bool* value, std::string help);
  // 0 to 65535.
  void Add(std::string name, uint16_t* value, std::string help);
  // From `low` to `high`.
  void Add(std::string name, int* value, int low, int high, std::string help);

  // Sets the flags, and returns the arguments that are none; all are after `--`.
  // Ends the program with 2 if something is wrong, with 0 after `--help`.
  std::vector<std::string> Parse(int argc, char** argv);
  // The same for programs that take nothing but flags.
  void ParseAll(int argc, char** argv);

  // Prints "echo_server: MESSAGE" to stderr, and returns the exit code: 2, or 1 for what
  // went wrong when it was at it.
  int Fail(std::string_view message, int code = 2) const;

 private:
  struct Flag {
    std::string name;
    std::string help;
    std::string default_value;
    bool is_switch;
    // Empty, or what is wrong with the text.
    std::function<std::string(const std::string& text)> set;
  };

  void AddNumber(std::string name, int value, int low, int high, std::string help,
                 std::function<void(int)> set);
  const Flag* Find(std::string_view name) const;
  std::string Set(const std::string& argument, int argc, char** argv, int* index) const;
  void PrintHelp() const;

  std::string usage_;
  std::vector<Flag> flags_;
};

}  // namespace weft

#endif  // WEFT_EXAMPLES_FLAGS_H_
