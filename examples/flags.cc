// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/flags.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft {

void Flags::Add(std::string name, std::string* value, std::string help) {
  flags_.push_back(
      {std::move(name), std::move(help), *value, false, [value](const std::string& text) {
         *value = text;
         return std::string();
       }});
}

void Flags::Add(std::string name, bool* value, std::string help) {
  flags_.push_back({std::move(name), std::move(help), "", true, [value](const std::string& text) {
                      if (absl::SimpleAtob(text, value)) return std::string();
                      return std::string("it is true or false");
                    }});
}

void Flags::Add(std::string name, uint16_t* value, std::string help) {
  AddNumber(std::move(name), *value, 0, 65535, std::move(help),
            [value](int number) { *value = static_cast<uint16_t>(number); });
}

void Flags::Add(std::string name, int* value, int low, int high, std::string help) {
  AddNumber(std::move(name), *value, low, high, std::move(help),
            [value](int number) { *value = number; });
}

void Flags::AddNumber(std::string name, int value, int low, int high, std::string help,
                      std::function<void(int)> set) {
  flags_.push_back({std::move(name), std::move(help), absl::StrCat(value), false,
                    [low, high, set = std::move(set)](const std::string& text) {
                      int number;
                      if (!absl::SimpleAtoi(text, &number) || number < low || number > high) {
                        return absl::StrCat("it is a number from ", low, " to ", high);
                      }
                      set(number);
                      return std::string();
                    }});
}

std::vector<std::string> Flags::Parse(int argc, char** argv) {
  std::vector<std::string> others;
  bool flags_are_over = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (flags_are_over || argument.size() < 2 || argument[0] != '-') {
      others.push_back(argument);
    } else if (argument == "--") {
      flags_are_over = true;
    } else if (argument == "--help" || argument == "-h") {
      PrintHelp();
      std::exit(0);
    } else if (const std::string error = Set(argument, argc, argv, &i); !error.empty()) {
      std::exit(Fail(error));
    }
  }
  return others;
}

void Flags::ParseAll(int argc, char** argv) {
  const std::vector<std::string> others = Parse(argc, argv);
  if (!others.empty())
    std::exit(Fail(absl::StrCat("what is \"", others.front(), "\"? It is no flag")));
}

std::string Flags::Set(const std::string& argument, int argc, char** argv, int* index) const {
  const size_t equals = argument.find('=');
  const std::string shown = argument.substr(0, equals);
  const Flag* flag = Find(shown.substr(shown.find_first_not_of('-') == std::string::npos
                                           ? shown.size()
                                           : shown.find_first_not_of('-')));
  if (flag == nullptr)
    return absl::StrCat("unknown flag ", shown, "; --help names those there are");
  std::string text = "true";
  if (equals != std::string::npos) {
    text = argument.substr(equals + 1);
  } else if (!flag->is_switch) {
    if (*index + 1 >= argc) return absl::StrCat(shown, " needs a value: ", flag->help);
    text = argv[++*index];
  }
  const std::string error = flag->set(text);
  return error.empty() ? error : absl::StrCat(shown, "=", text, " makes no sense: ", error);
}

const Flags::Flag* Flags::Find(std::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

void Flags::PrintHelp() const {
  std::printf("usage: %s%s\n", usage_.c_str(), flags_.empty() ? "" : " [--FLAG=VALUE...]");
  for (const Flag& flag : flags_) {
    const std::string shown = absl::StrCat("--", flag.name, flag.is_switch ? "" : "=");
    std::printf("  %-24s%s\n", absl::StrCat(shown, flag.default_value).c_str(), flag.help.c_str());
  }
}

int Flags::Fail(std::string_view message, int code) const {
  const std::string program = usage_.substr(0, usage_.find(' '));
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), std::string(message).c_str());
  return code;
}

}  // namespace weft
