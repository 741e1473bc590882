#include "metrics/json_lines_sink.h"

#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "metrics/record_fields.h"

namespace cohort::metrics {
namespace {

// Appends `"name":value,` to a line. Written out because a document object for every step would
// cost more than all else the record does.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& line) : line_(line) {}

  void operator()(std::string_view name, double value) {
    begin(name);
    if (std::isfinite(value)) {
      append_number(value);
    } else {
      line_ += "null,";
    }
  }

  template <std::integral Integer>
  void operator()(std::string_view name, Integer value) {
    begin(name);
    append_number(value);
  }

  template <class Number>
  void operator()(std::string_view name, const std::optional<Number>& value) {
    if (value) (*this)(name, *value);
  }

  void operator()(std::string_view name, const std::string& value) {
    begin(name);
    if (is_plain(value)) {
      line_.append(1, '"').append(value).append("\",");
    } else {
      // Foreign bytes are replaced: a line must stay readable whatever a message contained.
      using Json = nlohmann::json;
      line_ += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace) + ",";
    }
  }

 private:
  void begin(std::string_view name) { line_.append(1, '"').append(name).append("\":"); }

  template <class Number>
  void append_number(Number value) {
    char digits[32];
    const std::to_chars_result result = std::to_chars(digits, digits + sizeof digits, value);
    line_.append(digits, result.ptr).append(1, ',');
  }

  static bool is_plain(std::string_view text) {
    for (const char c : text) {
      if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') return false;
    }
    return true;
  }

  std::string& line_;
};

// Reads fields out of a parsed object and notes whether any was of the wrong type.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& object) : object_(object) {}

  bool good() const { return good_; }

  void operator()(const char* name, double& value) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    if (found->is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (found->is_number()) {
      value = found->get<double>();
    } else {
      good_ = false;
    }
  }

  template <std::integral Integer>
  void operator()(const char* name, Integer& value) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    if (found->is_number_unsigned()) {
      assign(value, found->get<std::uint64_t>());
    } else if (found->is_number_integer()) {
      assign(value, found->get<std::int64_t>());
    } else {
      good_ = false;
    }
  }

  template <class Number>
  void operator()(const char* name, std::optional<Number>& value) {
    if (find(name) == nullptr) return;
    (*this)(name, value.emplace());
  }

  void operator()(const char* name, std::string& value) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    if (found->is_string()) {
      value = found->get<std::string>();
    } else {
      good_ = false;
    }
  }

 private:
  const nlohmann::json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  template <class Integer, class Wide>
  void assign(Integer& value, Wide wide) {
    if (std::in_range<Integer>(wide)) {
      value = static_cast<Integer>(wide);
    } else {
      good_ = false;
    }
  }

  const nlohmann::json& object_;
  bool good_ = true;
};

template <class Record>
std::optional<AnyRecord> read(const nlohmann::json& object) {
  Record record;
  FieldReader reader(object);
  detail::visit_fields(record, reader);
  if (!reader.good()) return std::nullopt;
  return record;
}

}  // namespace

JsonLinesSink::JsonLinesSink(LineWriter write, Flush flush)
    : write_(std::move(write)), flush_(std::move(flush)) {
  COHORT_CHECK(write_ != nullptr, "a JSON lines sink needs somewhere to write");
}

template <class Record>
void JsonLinesSink::write_line(const Record& record) {
  const std::lock_guard lock(mutex_);
  line_.assign("{\"type\":\"").append(detail::type_name(record)).append("\",");
  detail::visit_fields(record, FieldWriter(line_));
  line_.back() = '}';
  line_ += '\n';
  write_(line_);
}

void JsonLinesSink::record(const StepRecord& record) { write_line(record); }
void JsonLinesSink::record(const EvaluationRecord& record) { write_line(record); }
void JsonLinesSink::record(const EventRecord& record) { write_line(record); }
void JsonLinesSink::record(const TrafficRecord& record) { write_line(record); }

void JsonLinesSink::flush() {
  const std::lock_guard lock(mutex_);
  if (flush_) flush_();
}

std::optional<AnyRecord> parse_record(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto type = object.find("type");
  if (type == object.end() || !type->is_string()) return std::nullopt;
  const auto& name = type->get_ref<const std::string&>();
  if (name == "step") return read<StepRecord>(object);
  if (name == "evaluation") return read<EvaluationRecord>(object);
  if (name == "event") return read<EventRecord>(object);
  if (name == "traffic") return read<TrafficRecord>(object);
  return std::nullopt;
}

}  // namespace cohort::metrics
