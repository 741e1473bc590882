// A fixed table of named factories for one interface.
//
// Every extension point has exactly one table (models/registry.cpp, methods/registry.cpp, ...),
// written out by hand: a new entry is one line, and the conformance tests run over the table, so
// registering a class is also what puts it under test. Explicit tables are greppable and ordered,
// and no object file is dropped from a static library.
//
// An entry may carry traits: what the rest of the program must know of a class without comparing
// its name (methods/method_traits.h).
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace cohort {

struct NoTraits {};

template <class Traits, class Interface, class... Args>
class RegistryWithTraits {
 public:
  using Factory = std::unique_ptr<Interface> (*)(Args...);

  struct Entry {
    std::string name;
    std::string description;  // one line for `cohort list`
    Factory make;
    Traits traits = {};
  };

  // `kind` is the noun used in messages: "model", "data set", "method".
  RegistryWithTraits(std::string kind, std::initializer_list<Entry> entries)
      : kind_(std::move(kind)), entries_(entries) {}

  const std::vector<Entry>& entries() const { return entries_; }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries_) all.push_back(entry.name);
    return all;
  }

  // Throws ConfigError listing the known names.
  const Entry& find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return entry;
    }
    throw ConfigError(unknown_name(kind_, name, names()));
  }

  std::unique_ptr<Interface> make(std::string_view name, Args... args) const {
    return find(name).make(std::forward<Args>(args)...);
  }

 private:
  std::string kind_;
  std::vector<Entry> entries_;
};

template <class Interface, class... Args>
using Registry = RegistryWithTraits<NoTraits, Interface, Args...>;

}  // namespace cohort
