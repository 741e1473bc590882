// The flags of CHOCO-SGD's run.py (epfml/ChocoSGD, dl_code/parameters.py), those of its early and
// of its late form, and their values in one command.
//
// Whoever asks for a value marks it as read, so that a flag which was given and nobody asked for
// can be named: nothing is ignored in silence.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dialects/flag_names.h"

namespace cohort::dialects {

struct ChocoFlag {
  enum class Kind { kText, kTruth, kWhole, kNumber, kNumbers };

  std::string name;  // "n_mpi_process": without its dashes
  Kind kind = Kind::kText;
  std::string usual;  // as it would be written; empty: none
  std::string help;
  std::string letter = {};  // "a": also -a
};

// All of them, in the order of the original's --help.
const std::vector<ChocoFlag>& choco_flags();

class ChocoFlags {
 public:
  ChocoFlags() = default;
  // What was written, by name. "None" means not given, as in the original's own commands. Throws
  // ConfigError for names that do not exist.
  explicit ChocoFlags(const std::map<std::string, std::string>& given);

  bool given(const std::string& name) const { return given_.count(name) > 0; }

  // The value, or the usual one; the name is that of a flag of the table. Each marks it as read and
  // throws ConfigError naming the flag when what was written is not of its kind.
  std::string text(const std::string& name);
  bool truth(const std::string& name);  // yes true t y 1, no false f n 0, in any case
  std::int64_t whole(const std::string& name, std::int64_t low, std::int64_t high);
  double number(const std::string& name, double low, double high);
  std::vector<double> numbers(const std::string& name);  // "150,225"; empty for none

  // Those given that nobody has asked for, in the table's order.
  std::vector<std::string> unread() const;

 private:
  std::map<std::string, std::string> given_;
  std::set<std::string> read_;
};

// The parts of "a,b" as numbers. Throws ConfigError in which `flag` is named.
std::vector<double> parse_choco_numbers(const std::string& flag, const std::string& text);

// By the values of --optimizer, our method; empty where it is the optimizer of a method that
// follows from the graph.
const std::map<std::string, std::string>& choco_methods();

// What its users have to change for our settings.
const FlagNames& choco_flag_names();

// Our name of what --comm_op asks for: by the program's names, by those of its guide ("sign+norm"),
// and by ours; "" for "". Throws ConfigError.
std::string choco_compressor(const std::string& operation);

}  // namespace cohort::dialects
