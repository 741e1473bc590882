#include "data/survey.h"

#include <system_error>

#include "core/error.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/image_list.h"
#include "data/locate.h"
#include "data/text_sets.h"

namespace cohort::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMessages = 20;

std::int64_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) throw FileError(file.string() + ": " + error.message());
  return static_cast<std::int64_t>(size);
}

void survey_idx(const FoundFiles& files, DataReport& report) {
  const std::vector<std::int64_t> train = read_idx_dimensions(files.train[0]);
  const std::vector<std::int64_t> test = read_idx_dimensions(files.test[0]);
  if (train.size() != 3 || test.size() != 3) {
    throw FileError(files.folder.string() + ": the image files should have 3 dimensions");
  }
  report.shape = {1, train[1], train[2]};
  report.train = train[0];
  report.test = test[0];
  report.classes = 10;
}

void survey_cifar(const FoundFiles& files, CifarKind kind, DataReport& report) {
  const auto records = [kind](const std::vector<fs::path>& batches) {
    std::int64_t count = 0;
    for (const fs::path& batch : batches) {
      const std::int64_t size = size_of(batch);
      if (size == 0 || size % cifar_record_bytes(kind) != 0) {
        throw FileError(batch.string() + ": has " + std::to_string(size) +
                        " bytes, expected a positive multiple of the record size " +
                        std::to_string(cifar_record_bytes(kind)));
      }
      count += size / cifar_record_bytes(kind);
    }
    return count;
  };
  report.shape = {3, 32, 32};
  report.classes = static_cast<std::int64_t>(cifar_class_names(kind).size());
  report.train = records(files.train);
  report.test = records(files.test);
}

void survey_listings(const ImageListing& train, const ImageListing& test, DataReport& report) {
  report.shape = {3, 224, 224};
  report.classes = static_cast<std::int64_t>(train.class_names.size());
  report.train = static_cast<std::int64_t>(train.entries.size());
  report.test = static_cast<std::int64_t>(test.entries.size());
  for (std::string& note : passed_over_notes(train, test)) report.notes.push_back(std::move(note));
}

void survey_folder(const FoundFiles& files, DataReport& report) {
  const ImageListing train = list_images(files.train[0]);
  ImageListing test = list_images(files.test[0]);
  relabel(test, train, files.test[0]);
  survey_listings(train, test, report);
}

void survey_text(const FoundFiles& files, DataReport& report) {
  const TextCounts counts = count_words(files);
  report.train = counts.train;
  report.test = counts.test;
  report.classes = counts.vocabulary;
  report.notes.push_back("words; " + std::to_string(counts.validation) + " more for validation");
}

void note_counts(DataReport& report) {
  std::int64_t train = 0;
  if (report.name == "mnist" || report.name == "fashion-mnist") train = 60'000;
  if (report.name == "cifar-10" || report.name == "cifar-100") train = 50'000;
  if (train != 0 && (report.train != train || report.test != 10'000)) {
    report.notes.push_back("the original has " + std::to_string(train) +
                           " training and 10000 test samples");
  }
}

DataReport survey_one(const std::string& name, std::span<const fs::path> search) {
  DataReport report;
  report.name = name;
  if (name == "synthetic") {
    report.found = true;
    report.notes.emplace_back("generated when asked for, in any shape");
    return report;
  }
  try {
    const FoundFiles files = locate(name, search);
    report.found = true;
    report.folder = files.folder;
    if (name == "cifar-10") {
      survey_cifar(files, CifarKind::kTen, report);
    } else if (name == "cifar-100") {
      survey_cifar(files, CifarKind::kHundred, report);
    } else if (name == "image-folder") {
      survey_folder(files, report);
    } else if (name == "image-list") {
      survey_listings(read_image_list(files.train[0]), read_image_list(files.test[0]), report);
    } else if (is_text_set(name)) {
      survey_text(files, report);
    } else {
      survey_idx(files, report);
    }
    note_counts(report);
  } catch (const FileError& error) {
    report.problem = error.what();
  }
  return report;
}

std::vector<std::int64_t> histogram(const Dataset& data) {
  std::vector<std::int64_t> counts(data.class_names().size(), 0);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    ++counts[static_cast<std::size_t>(data.label(i))];
  }
  return counts;
}

void decode_all(const Dataset& data, DataReport& report) {
  const auto* folder = dynamic_cast<const ImageFolder*>(&data);
  if (folder == nullptr) return;
  for (const ImageListing::Entry& entry : folder->listing().entries) {
    try {
      decode_image(read_image_file(entry.file).octets(), entry.file.string());
    } catch (const FileError& error) {
      ++report.bad_files;
      if (report.bad_file_messages.size() < kMessages) {
        report.bad_file_messages.emplace_back(error.what());
      }
    }
  }
}

}  // namespace

std::vector<DataReport> survey(std::span<const fs::path> search) {
  std::vector<DataReport> reports;
  for (const std::string& name : data_sets().names()) reports.push_back(survey_one(name, search));
  return reports;
}

DataReport verify(const DataRequest& request) {
  DataReport report = survey_one(data_sets().find(request.name).name, request.search);
  if (!report.problem.empty()) return report;
  try {
    if (is_text_set(report.name)) return report;  // all of it has been read
    const std::unique_ptr<DataSplits> splits = load_data(request);
    report.train = splits->train->size();
    report.test = splits->test->size();
    report.shape = splits->train->shape();
    report.class_names = splits->train->class_names();
    report.classes = static_cast<std::int64_t>(report.class_names.size());
    report.train_histogram = histogram(*splits->train);
    report.test_histogram = histogram(*splits->test);
    decode_all(*splits->train, report);
    decode_all(*splits->test, report);
    if (report.bad_files > 0) {
      report.problem = std::to_string(report.bad_files) + " pictures cannot be read";
    }
  } catch (const FileError& error) {
    report.problem = error.what();
  }
  return report;
}

}  // namespace cohort::data
