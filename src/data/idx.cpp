#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "storage/file.h"

namespace cohort::data {
namespace {

// No deflate stream expands further than this (zlib's technical notes: 1032:1).
constexpr std::uint64_t kDeflateLimit = 1032;
constexpr int kMaxRank = 4;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw FileError(name + ": " + what);
}

// The file's content in order, whether it is compressed or not.
class Source {
 public:
  virtual ~Source() = default;
  // Fills `out` as far as the content goes and returns how much that was.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  // The most bytes that can still come.
  virtual std::uint64_t limit() const = 0;
  // Whether so many do come.
  virtual bool known_to_come() const = 0;
};

class PlainSource final : public Source {
 public:
  explicit PlainSource(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  std::size_t read(std::span<std::uint8_t> out) override {
    const std::size_t n = std::min(out.size(), rest_.size());
    if (n > 0) std::memcpy(out.data(), rest_.data(), n);
    rest_ = rest_.subspan(n);
    return n;
  }
  std::uint64_t limit() const override { return rest_.size(); }
  bool known_to_come() const override { return true; }

 private:
  std::span<const std::uint8_t> rest_;
};

class GzipSource final : public Source {
 public:
  GzipSource(std::span<const std::uint8_t> bytes, const std::string& name)
      : rest_(bytes), size_(bytes.size()), name_(name) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw RunError("zlib could not be started");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size() && !ended_) done += inflate_some(out.subspan(done));
    return done;
  }
  std::uint64_t limit() const override { return size_ * kDeflateLimit; }
  bool known_to_come() const override { return false; }

 private:
  // zlib counts in 32 bits, so long inputs and outputs go through in pieces.
  std::size_t inflate_some(std::span<std::uint8_t> out) {
    constexpr std::size_t kPiece = std::size_t{1} << 30;
    const std::size_t in_size = std::min(rest_.size(), kPiece);
    const std::size_t out_size = std::min(out.size(), kPiece);
    stream_.next_in = const_cast<Bytef*>(rest_.data());
    stream_.avail_in = static_cast<uInt>(in_size);
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out_size);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    rest_ = rest_.subspan(in_size - stream_.avail_in);
    if (status == Z_STREAM_END) {
      end_member();
    } else if (status != Z_OK) {
      if (rest_.empty()) fail(name_, "the gzip data end too early");
      fail(name_, std::string("the gzip data are damaged: ") +
                      (stream_.msg != nullptr ? stream_.msg : "unknown zlib error"));
    }
    return out_size - stream_.avail_out;
  }

  // A gzip file may consist of several members, one after the other.
  void end_member() {
    if (rest_.empty()) {
      ended_ = true;
    } else if (inflateReset(&stream_) != Z_OK) {
      fail(name_, "the gzip data are damaged");
    }
  }

  std::span<const std::uint8_t> rest_;
  std::uint64_t size_;
  const std::string& name_;
  z_stream stream_{};
  bool ended_ = false;
};

template <class Use>
auto with_source(std::span<const std::uint8_t> bytes, const std::string& name, Use use) {
  if (bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
    GzipSource source(bytes, name);
    return use(source);
  }
  PlainSource source(bytes);
  return use(source);
}

std::vector<std::int64_t> read_header(Source& source, const std::string& name) {
  std::array<std::uint8_t, 4> magic{};
  if (source.read(magic) != magic.size()) fail(name, "too short for an idx file");
  if (magic[0] != 0 || magic[1] != 0) fail(name, "not an idx file: it should begin with 0 0");
  if (magic[2] != 8) {
    fail(name, "idx type " + std::to_string(magic[2]) + " found, expected 8 (unsigned byte)");
  }
  if (magic[3] < 1 || magic[3] > kMaxRank) {
    fail(name, std::to_string(magic[3]) + " dimensions found, expected 1 to 4");
  }
  std::vector<std::int64_t> dimensions;
  std::uint64_t product = 1;
  for (int i = 0; i < magic[3]; ++i) {
    std::array<std::uint8_t, 4> word{};
    if (source.read(word) != word.size()) fail(name, "ends within the idx header");
    const std::uint64_t size = (std::uint64_t{word[0]} << 24) | (std::uint64_t{word[1]} << 16) |
                               (std::uint64_t{word[2]} << 8) | word[3];
    if (size == 0) fail(name, "a dimension is 0");
    // Both factors are below 2^32, so the product cannot wrap before it is refused.
    product *= size;
    if (product > kIdxLimitBytes) fail(name, "the header declares more than 2 GiB");
    dimensions.push_back(static_cast<std::int64_t>(size));
  }
  return dimensions;
}

std::uint64_t product_of(const std::vector<std::int64_t>& dimensions) {
  std::uint64_t product = 1;
  for (const std::int64_t size : dimensions) product *= static_cast<std::uint64_t>(size);
  return product;
}

// Fills `values` with at most `expected` bytes, and returns how many there were. A compressed
// file's length says little of its content's: memory is taken as the content comes, and no more
// than twice of it.
std::size_t read_all(Source& source, std::uint64_t expected, std::vector<std::uint8_t>& values) {
  constexpr std::uint64_t kFirst = std::uint64_t{64} << 20;
  std::size_t found = 0;
  while (found == values.size() && found < expected) {
    const std::uint64_t room = std::max<std::uint64_t>(kFirst, 2 * std::uint64_t{found});
    values.resize(std::min(expected, source.known_to_come() ? expected : room));
    found += source.read(std::span(values).subspan(found));
  }
  return found;
}

}  // namespace

IdxArray parse_idx(std::span<const std::uint8_t> bytes, const std::string& name) {
  return with_source(bytes, name, [&](Source& source) {
    IdxArray array;
    array.dimensions = read_header(source, name);
    const std::uint64_t expected = product_of(array.dimensions);
    if (expected > source.limit()) {
      fail(name, "truncated: the header declares " + std::to_string(expected) +
                     " values, the file can hold at most " + std::to_string(source.limit()));
    }
    const std::size_t found = read_all(source, expected, array.values);
    if (found != expected) {
      fail(name, "truncated: the header declares " + std::to_string(expected) + " values, found " +
                     std::to_string(found));
    }
    std::array<std::uint8_t, 1> more{};
    if (source.read(more) != 0) {
      fail(name, "longer than its header declares (" + std::to_string(expected) + " values)");
    }
    return array;
  });
}

std::vector<std::int64_t> parse_idx_dimensions(std::span<const std::uint8_t> bytes,
                                               const std::string& name) {
  return with_source(bytes, name, [&](Source& source) { return read_header(source, name); });
}

IdxArray read_idx(const std::filesystem::path& path) {
  const std::string name = path.string();
  return parse_idx(storage::read_file(path, kIdxLimitBytes + 64).octets(), name);
}

std::vector<std::int64_t> read_idx_dimensions(const std::filesystem::path& path) {
  const std::string name = path.string();
  return parse_idx_dimensions(storage::read_file(path, kIdxLimitBytes + 64).octets(), name);
}

ImageArray read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                           int classes) {
  // The headers of both first: what does not belong together is not unpacked.
  const std::vector<std::int64_t> sizes = read_idx_dimensions(images);
  if (sizes.size() != 3) {
    fail(images.string(),
         std::to_string(sizes.size()) + " dimensions found, expected 3: images, rows, columns");
  }
  const std::vector<std::int64_t> counts = read_idx_dimensions(labels);
  if (counts.size() != 1) {
    fail(labels.string(),
         std::to_string(counts.size()) + " dimensions found, expected 1: one label for each image");
  }
  if (counts[0] != sizes[0]) {
    fail(labels.string(), "has " + std::to_string(counts[0]) + " labels, but " + images.string() +
                              " has " + std::to_string(sizes[0]) + " images");
  }
  IdxArray targets = read_idx(labels);
  for (std::size_t i = 0; i < targets.values.size(); ++i) {
    if (targets.values[i] >= classes) {
      fail(labels.string(), "record " + std::to_string(i) + " has label " +
                                std::to_string(targets.values[i]) + ", expected 0 to " +
                                std::to_string(classes - 1));
    }
  }
  return {.shape = {1, sizes[1], sizes[2]},
          .pixels = read_idx(images).values,
          .labels = std::move(targets.values)};
}

}  // namespace cohort::data
