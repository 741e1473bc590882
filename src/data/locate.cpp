#include "data/locate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>

#include "core/error.h"
#include "core/text.h"

namespace cohort::data {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::string_view name;
  std::vector<std::string> folders;             // below a search folder; "" is the folder itself
  std::vector<std::vector<std::string>> train;  // for each file its possible names
  std::vector<std::vector<std::string>> test;
  std::string advice;
};

std::vector<std::string> idx_names(const std::string& stem, const std::string& rank) {
  const std::string dashed = stem + "-idx" + rank + "-ubyte";
  const std::string dotted = stem + ".idx" + rank + "-ubyte";
  return {dashed + ".gz", dashed, dotted + ".gz", dotted};
}

std::vector<std::vector<std::string>> idx_pair(const std::string& split) {
  return {idx_names(split + "-images", "3"), idx_names(split + "-labels", "1")};
}

std::vector<Place> make_places() {
  const std::string idx_files =
      "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
      "t10k-labels-idx1-ubyte (.gz or not)";
  const std::string put = "; name their folder with --data-dir or COHORT_DATA_DIR";
  return {
      {"fashion-mnist",
       {"fashion-mnist", "FashionMNIST/raw", "FashionMNIST", "fashion_mnist", ""},
       idx_pair("train"),
       idx_pair("t10k"),
       "install Debian's package dataset-fashion-mnist, or get " + idx_files + put},
      {"mnist",
       {"mnist", "MNIST/raw", "MNIST", ""},
       idx_pair("train"),
       idx_pair("t10k"),
       "get " + idx_files + put},
      {"cifar-10",
       {"cifar-10-batches-bin", "cifar-10", "cifar10", "cifar-10/cifar-10-batches-bin",
        "cifar10/cifar-10-batches-bin", "CIFAR10/cifar-10-batches-bin", ""},
       {{"data_batch_1.bin"},
        {"data_batch_2.bin"},
        {"data_batch_3.bin"},
        {"data_batch_4.bin"},
        {"data_batch_5.bin"}},
       {{"test_batch.bin"}},
       "get the binary version, data_batch_1.bin to data_batch_5.bin and test_batch.bin" + put},
      {"cifar-100",
       {"cifar-100-binary", "cifar-100", "cifar100", "cifar-100/cifar-100-binary",
        "cifar100/cifar-100-binary", "CIFAR100/cifar-100-binary", ""},
       {{"train.bin"}},
       {{"test.bin"}},
       "get the binary version, train.bin and test.bin" + put},
      {"image-folder",
       {""},
       {{"train"}},
       {{"val"}},
       "name a folder with train/<class>/ and val/<class>/ with --data-dir or COHORT_DATA_DIR"},
      {"image-list",
       {""},
       {{"train_list.txt"}},
       {{"val_list.txt"}},
       "name a folder with train_list.txt and val_list.txt, a picture and its label in each line, "
       "with --data-dir or COHORT_DATA_DIR"},
      {"wikitext-2",
       {"wikitext-2", "wikitext2", "WikiText2/wikitext-2", "wikitext-2/wikitext-2", ""},
       {{"wiki.train.tokens"}},
       {{"wiki.test.tokens"}, {"wiki.valid.tokens"}},
       "get wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens" + put},
      {"ptb",
       {"ptb", "penn-treebank", "PennTreebank", ""},
       {{"ptb.train.txt"}},
       {{"ptb.test.txt"}, {"ptb.valid.txt"}},
       "get ptb.train.txt, ptb.valid.txt and ptb.test.txt" + put},
      {"text",
       {""},
       {{"train.txt"}},
       {{"test.txt"}, {"valid.txt"}},
       "name a folder with train.txt, valid.txt and test.txt with --data-dir or COHORT_DATA_DIR"},
  };
}

const Place& place_of(std::string_view name) {
  static const std::vector<Place> places = make_places();
  for (const Place& place : places) {
    if (place.name == name) return place;
  }
  std::vector<std::string> known;
  for (const Place& place : places) known.emplace_back(place.name);
  throw ConfigError(unknown_name("data set", name, known));
}

std::string letters_of(const fs::path& path) {
  std::string letters;
  for (const char c : path.string()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return letters;
}

// Whether the last two parts of the folder's name speak of another set with the same file names.
bool names_another(std::string_view set, const fs::path& folder) {
  if (set != "mnist" && set != "fashion-mnist") return false;
  fs::path plain = folder.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  for (int part = 0; part < 2; ++part, plain = plain.parent_path()) {
    const std::string name = letters_of(plain.filename());
    if (name.find("mnist") == std::string::npos) continue;
    return name.find(letters_of(fs::path(set))) == std::string::npos ||
           (set == "mnist" && name != "mnist" && name != "mnistdata");
  }
  return false;
}

bool exists_as(const fs::path& path, bool folder) {
  std::error_code ignored;
  return folder ? fs::is_directory(path, ignored) : fs::is_regular_file(path, ignored);
}

// Adds the files that are there to `found`, the names of the others to `missing`.
void find_files(const fs::path& folder, const std::vector<std::vector<std::string>>& names,
                bool as_folder, std::vector<fs::path>& found, std::vector<std::string>& missing) {
  for (const std::vector<std::string>& spellings : names) {
    const auto hit = std::find_if(spellings.begin(), spellings.end(), [&](const auto& spelling) {
      return exists_as(folder / spelling, as_folder);
    });
    if (hit != spellings.end()) {
      found.push_back(folder / *hit);
    } else {
      missing.push_back(spellings.front());
    }
  }
}

}  // namespace

FoundFiles locate(std::string_view name, std::span<const fs::path> search) {
  const Place& place = place_of(name);
  const bool as_folder = name == "image-folder";
  std::string tried;
  for (const fs::path& base : search) {
    if (!exists_as(base, true)) {
      tried += "\n  " + base.string() + " (there is no such folder)";
      continue;
    }
    for (const std::string& below : place.folders) {
      const fs::path folder = below.empty() ? base : base / below;
      tried += "\n  " + folder.string();
      if (!exists_as(folder, true)) continue;
      FoundFiles found{folder, {}, {}};
      std::vector<std::string> missing;
      find_files(folder, place.train, as_folder, found.train, missing);
      find_files(folder, place.test, as_folder, found.test, missing);
      const bool some = !found.train.empty() || !found.test.empty();
      if (some && below.empty() && names_another(name, folder)) {
        tried += " (passed over: it is named after another data set)";
      } else if (missing.empty()) {
        return found;
      } else if (some) {
        tried += " (lacks " + join(missing, ", ") + ")";
      }
    }
  }
  throw FileError("data set '" + std::string(name) + "' was not found; looked in" +
                  (tried.empty() ? " no folder at all" : tried) + "\nTo have it, " + place.advice);
}

}  // namespace cohort::data
