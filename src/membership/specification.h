// What the specifications of jobs have in common: JSON documents that workers bring and a server
// compares. Whatever is wrong with one is a PeerError: a peer wrote it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "storage/json.h"

namespace cohort::membership {

inline constexpr int kMaxSpecificationDepth = 4;

// Reads the members of an object, within bounds, and knows which it has read.
class SpecificationReader {
 public:
  static constexpr double kMaxNumber = 1e15;
  static constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;

  explicit SpecificationReader(const nlohmann::json& object);

  double number(const char* key, double low, double high);
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high);
  bool boolean(const char* key);
  std::string text(const char* key);
  std::vector<double> numbers(const char* key);
  const nlohmann::json& member(const char* key);
  void require_all_read() const;

 private:
  const nlohmann::json& object_;
  std::size_t read_ = 0;
};

// `read` makes a specification of the document.
template <class Read>
auto read_specification(const std::string& text, const Read& read) {
  try {
    return read(storage::parse_json(text, kMaxSpecificationDepth));
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    throw PeerError(std::string("a job's specification: ") + error.what());
  } catch (const nlohmann::json::exception& error) {
    throw PeerError(std::string("a job's specification: ") + error.what());
  }
}

// Settings beside those of the specification that must agree: a JSON object as text, or nothing.
nlohmann::json further_settings(const std::string& text);

// Where `flat`, a job's settings by the names that flags have, is not what the server was told when
// it was started: `told` is such an object as text, or empty. For the person who started the
// worker.
std::string differences_from_told(const std::string& told, const nlohmann::json& flat,
                                  const std::string& where);

}  // namespace cohort::membership
