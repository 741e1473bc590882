#include "data/support.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "storage/folder.h"

#ifdef COHORT_WITH_JPEG
#include <jpeglib.h>
#endif

namespace cohort::data::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "cohort_data_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() { storage::remove_tree(path_); }

fs::path TemporaryFolder::write(const std::string& name, const ByteVector& bytes) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return file;
}

ByteVector gzip(const ByteVector& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  ByteVector out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

ByteVector idx(const std::vector<std::uint32_t>& dimensions, const ByteVector& values) {
  ByteVector bytes = {0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
  for (const std::uint32_t size : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

void write_small_mnist(const TemporaryFolder& folder, const std::string& below, int train,
                       int test) {
  for (const auto& [split, count] : {std::pair("train", train), std::pair("t10k", test)}) {
    ByteVector pixels;
    ByteVector labels;
    for (int i = 0; i < count; ++i) {
      for (int p = 0; p < 6; ++p) pixels.push_back(static_cast<std::uint8_t>(i * 6 + p));
      labels.push_back(static_cast<std::uint8_t>(i % 10));
    }
    const auto n = static_cast<std::uint32_t>(count);
    folder.write(below + split + "-images-idx3-ubyte.gz", gzip(idx({n, 2, 3}, pixels)));
    folder.write(below + split + "-labels-idx1-ubyte", idx({n}, labels));
  }
}

ByteVector cifar_records(int count, bool hundred) {
  ByteVector bytes;
  for (int i = 0; i < count; ++i) {
    if (hundred) bytes.push_back(static_cast<std::uint8_t>(i % 20));
    bytes.push_back(static_cast<std::uint8_t>(i % (hundred ? 100 : 10)));
    for (int p = 0; p < 3072; ++p) bytes.push_back(static_cast<std::uint8_t>(i + p));
  }
  return bytes;
}

namespace {

// `pixel` appends the values of the pixel (x, y), `channels` of them.
template <class Pixel>
ByteVector encode_jpeg(int width, int height, int channels, Pixel pixel) {
#ifdef COHORT_WITH_JPEG
  jpeg_compress_struct info{};
  jpeg_error_mgr error{};
  info.err = jpeg_std_error(&error);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < height; ++y) {
    ByteVector row;
    for (int x = 0; x < width; ++x) pixel(x, y, row);
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  ByteVector bytes(memory, memory + size);
  std::free(memory);
  return bytes;
#else
  static_cast<void>(width), static_cast<void>(height), static_cast<void>(channels);
  static_cast<void>(pixel);
  throw std::runtime_error("built without libjpeg");
#endif
}

}  // namespace

ByteVector jpeg(int width, int height, const ByteVector& colour) {
  return encode_jpeg(
      width, height, static_cast<int>(colour.size()),
      [&](int, int, ByteVector& row) { row.insert(row.end(), colour.begin(), colour.end()); });
}

ByteVector noisy_jpeg(int width, int height) {
  return encode_jpeg(width, height, 3, [](int x, int y, ByteVector& row) {
    for (int c = 0; c < 3; ++c) {
      row.push_back(static_cast<std::uint8_t>((x * 37 + y * 101 + c * 59 + x * y * 13) % 256));
    }
  });
}

std::vector<float> read_sample(const Dataset& data, std::int64_t index,
                               std::uint64_t augmentation) {
  std::vector<float> sample(static_cast<std::size_t>(data.shape().numel()));
  data.read(index, augmentation, sample);
  return sample;
}

}  // namespace cohort::data::test
