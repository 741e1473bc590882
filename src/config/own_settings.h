// The settings of one part of the program, declared where that part is and read into its own
// struct: nothing else has to know them.
//
//   struct SlowMoSettings { double momentum = 0.6; };
//   const OwnSettings<SlowMoSettings> settings(
//       "SlowMo", {{"slow-momentum", &SlowMoSettings::momentum, "of the outer step", 0, 1}});
//
//   traits.settings = settings.fields();                // for flags, files, --help
//   const SlowMoSettings own = settings.read(options.own);  // when the part is made
//
// The struct's initial values are the defaults.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/run_config.h"

namespace cohort::config {

template <class Struct>
class OwnSettings {
 public:
  struct Row {
    // `member` is a std::string, std::int64_t, double, bool or std::vector<double>.
    template <class T>
    Row(std::string name, T Struct::*member, std::string help, double low = -1e308,
        double high = 1e308, std::vector<std::string> choices = {})
        : field{std::move(name),   {},  ConfigField::Own{SettingValue(Struct{}.*member)},
                std::move(help),   low, high,
                std::move(choices)},
          assign([member](Struct& settings, const SettingValue& value) {
            settings.*member = std::get<T>(value);
          }) {}

    ConfigField field;
    std::function<void(Struct&, const SettingValue&)> assign;
  };

  OwnSettings(std::string group, std::vector<Row> rows)
      : group_(std::move(group)), rows_(std::move(rows)) {}

  std::vector<ConfigField> fields() const {
    std::vector<ConfigField> all;
    for (const Row& row : rows_) {
      all.push_back(row.field);
      all.back().group = group_;
    }
    return all;
  }

  Struct read(const SettingValues& values) const {
    Struct result;
    for (const Row& row : rows_) {
      const auto found = values.find(row.field.name);
      if (found != values.end()) row.assign(result, found->second);
    }
    return result;
  }

 private:
  std::string group_;
  std::vector<Row> rows_;
};

}  // namespace cohort::config
