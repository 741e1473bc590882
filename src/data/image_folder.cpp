#include "data/image_folder.h"

#include <algorithm>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "storage/file.h"

namespace cohort::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxImageBytes = std::uint64_t{256} << 20;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error) throw FileError(folder.string() + ": cannot be listed: " + error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::string ending_of(const fs::path& path) { return lower(path.extension().string()); }

bool named_as_picture(const fs::path& path) {
  const std::string ending = ending_of(path);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

void pass_over(const fs::path& file, ImageListing& listing) {
  const std::string ending = ending_of(file);
  ++listing.passed_over[ending.empty() ? "without an ending" : ending];
}

std::string passed_over_text(const ImageListing& listing) {
  std::vector<std::string> parts;
  for (const auto& [ending, count] : listing.passed_over) {
    parts.push_back(std::to_string(count) + " " + ending);
  }
  return join(parts, ", ");
}

// Adds the folders below `folder`, which comes first. A link to a folder that it lies in would have
// no end: `around` holds the folders gone through to get here.
void add_folders(const fs::path& folder, std::vector<fs::path>& around,
                 std::vector<fs::path>& folders) {
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  if (error) throw FileError(folder.string() + ": cannot be listed: " + error.message());
  if (std::find(around.begin(), around.end(), place) != around.end()) return;
  folders.push_back(folder);
  around.push_back(place);
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (!hidden(entry) && fs::is_directory(entry, ignored)) add_folders(entry, around, folders);
  }
  around.pop_back();
}

void add_class(const fs::path& folder, ImageListing& listing) {
  const std::size_t before = listing.entries.size();
  const auto label = static_cast<std::int64_t>(listing.class_names.size());
  std::vector<fs::path> folders;
  std::vector<fs::path> around;
  add_folders(folder, around, folders);
  std::sort(folders.begin(), folders.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  for (const fs::path& each : folders) {
    for (const fs::path& file : entries_of(each)) {
      std::error_code ignored;
      if (hidden(file) || fs::is_directory(file, ignored)) continue;
      if (named_as_picture(file)) {
        listing.entries.push_back({file, label});
      } else {
        pass_over(file, listing);
      }
    }
  }
  if (listing.entries.size() == before) {
    const std::string others = passed_over_text(listing);
    throw FileError(folder.string() + ": a class without pictures (.jpg, .jpeg or .png)" +
                    (others.empty() ? "" : "; passed over so far: " + others));
  }
  listing.class_names.push_back(folder.filename().string());
}

// Where the entries stand when one of each class is taken in turn.
std::vector<std::size_t> places_by_turns(const ImageListing& listing) {
  std::vector<std::int64_t> seen(listing.class_names.size(), 0);
  std::vector<std::pair<std::int64_t, std::size_t>> turns;  // (round, place)
  for (std::size_t i = 0; i < listing.entries.size(); ++i) {
    turns.emplace_back(seen[static_cast<std::size_t>(listing.entries[i].label)]++, i);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<std::size_t> places;
  for (const auto& [round, place] : turns) places.push_back(place);
  return places;
}

}  // namespace

ImageListing list_images(const fs::path& folder) {
  ImageListing listing;
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (hidden(entry)) continue;
    if (fs::is_directory(entry, ignored)) {
      add_class(entry, listing);
    } else {
      pass_over(entry, listing);
    }
  }
  if (listing.class_names.empty()) {
    throw FileError(folder.string() +
                    ": expected one folder of pictures for each class, found none");
  }
  return listing;
}

std::vector<std::string> passed_over_notes(const ImageListing& train, const ImageListing& test) {
  std::vector<std::string> notes;
  for (const auto& [listing, split] : {std::pair(&train, "training"), std::pair(&test, "test")}) {
    if (listing->passed_over.empty()) continue;
    notes.push_back(std::string("passed over among the ") + split +
                    " pictures, being neither .jpg, .jpeg nor .png: " + passed_over_text(*listing));
  }
  return notes;
}

void relabel(ImageListing& other, const ImageListing& listing, const fs::path& other_folder) {
  std::vector<std::int64_t> new_labels;
  for (const std::string& name : other.class_names) {
    const auto place =
        std::lower_bound(listing.class_names.begin(), listing.class_names.end(), name);
    if (place == listing.class_names.end() || *place != name) {
      throw FileError((other_folder / name).string() +
                      ": this class is not among those of the training set");
    }
    new_labels.push_back(place - listing.class_names.begin());
  }
  for (ImageListing::Entry& entry : other.entries) {
    entry.label = new_labels[static_cast<std::size_t>(entry.label)];
  }
  other.class_names = listing.class_names;
}

void keep_first(ImageListing& listing, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(listing.entries.size())) return;
  const std::vector<std::size_t> places = places_by_turns(listing);
  std::vector<ImageListing::Entry> kept;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    kept.push_back(std::move(listing.entries[places[i]]));
  }
  listing.entries = std::move(kept);
}

void drop_first(ImageListing& listing, std::int64_t count) {
  if (count == 0) return;
  std::vector<std::size_t> places = places_by_turns(listing);
  places.erase(places.begin(), places.begin() + count);
  std::sort(places.begin(), places.end());
  std::vector<ImageListing::Entry> kept;
  for (const std::size_t place : places) kept.push_back(std::move(listing.entries[place]));
  listing.entries = std::move(kept);
}

storage::FileContent read_image_file(const fs::path& file) {
  return storage::read_file(file, kMaxImageBytes);
}

ImageFolder::ImageFolder(ImageListing listing, const ImageFolderOptions& options)
    : listing_(std::move(listing)),
      side_(static_cast<int>(options.image_size)),
      augmentation_(options.augmentation),
      fast_decode_(options.fast_decode),
      table_(options.normalization) {
  COHORT_CHECK(options.image_size > 0 && options.image_size <= kMaxImageSide / 2,
               "image size in range");
}

void ImageFolder::read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const {
  COHORT_CHECK(index >= 0 && index < size(), "sample index in range");
  const std::string name = listing_.entries[static_cast<std::size_t>(index)].file.string();
  const storage::FileContent content = read_image_file(name);
  const std::span<const std::uint8_t> bytes = content.octets();
  const ImageSize full = read_image_size(bytes, name);
  RandomStream random(augmentation);
  const auto decode = [&](const CropBox& needed, ImageSize wanted) {
    return decode_image(bytes, name, fast_decode_ ? permitted_reduction(needed, wanted) : 1);
  };

  if (augmentation_ == ImageAugmentation::kResizedCrop) {
    const CropBox box = random_resized_crop(full, random);
    const bool mirror = (random() >> 63) != 0;
    const Image image = decode(box, {side_, side_});
    const Image resized = resized_crop(image, scale_box(box, full, image.size), {side_, side_});
    write_normalized(resized, {0, 0, side_, side_}, mirror, table_, out);
    return;
  }

  const CropBox part = without_long_ends(full);
  const ImageSize wanted = shorter_side_to({part.width, part.height}, side_ * 256 / 224);
  const Image image = decode(part, wanted);
  const Image resized = resized_crop(image, scale_box(part, full, image.size), wanted);
  CropBox box = centre_square(wanted, side_);
  bool mirror = false;
  if (augmentation_ == ImageAugmentation::kCropFlip) {
    box.x = static_cast<int>(random.below(static_cast<std::uint64_t>(wanted.width - side_) + 1));
    box.y = static_cast<int>(random.below(static_cast<std::uint64_t>(wanted.height - side_) + 1));
    mirror = (random() >> 63) != 0;
  }
  write_normalized(resized, box, mirror, table_, out);
}

}  // namespace cohort::data
