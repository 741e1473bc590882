#include "core/error.h"
#include "data/image_codec.h"

#ifdef COHORT_WITH_JPEG
#include <csetjmp>
#include <cstdio>
// After cstdio, which it needs and does not include.
#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>
#endif

namespace cohort::data::detail {

#ifdef COHORT_WITH_JPEG
namespace {

// libjpeg reports errors by a call that must not return. An exception may not cross its frames,
// so errors jump back here; the functions that call setjmp hold no objects with destructors.
struct ErrorState {
  jpeg_error_mgr manager;  // first, so that libjpeg's pointer to it is a pointer to this
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr common) {
  auto* state = reinterpret_cast<ErrorState*>(common->err);
  common->err->format_message(common, state->message);
  std::longjmp(state->back, 1);
}

// Warnings that mean missing or garbled picture data count as errors; the rest (odd markers,
// stray bytes between segments) are harmless and common in photographs from the web.
void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;
  const int code = common->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE) {
    on_error(common);
  }
}

class JpegDecoder {
 public:
  JpegDecoder(std::span<const std::uint8_t> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {
    info_.err = jpeg_std_error(&error_.manager);
    error_.manager.error_exit = on_error;
    error_.manager.emit_message = on_message;
    error_.message[0] = '\0';
    require(create());
    created_ = true;
  }
  ~JpegDecoder() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ImageSize read_size() {
    require(read_header());
    check_image_size(info_.image_width, info_.image_height, bytes_.size(), name_);
    return {static_cast<int>(info_.image_width), static_cast<int>(info_.image_height)};
  }

  Image decode(int reduction) {
    read_size();
    require(start(reduction));
    Image image;
    image.size = {static_cast<int>(info_.output_width), static_cast<int>(info_.output_height)};
    const std::size_t pixels = std::size_t{info_.output_width} * info_.output_height;
    const bool four = info_.out_color_space == JCS_CMYK;
    image.pixels.resize(pixels * 3);
    std::vector<std::uint8_t> inks(four ? pixels * 4 : 0);
    std::uint8_t* rows = four ? inks.data() : image.pixels.data();
    require(read_rows(rows, std::size_t{info_.output_width} * (four ? 4 : 3)));
    if (four) inks_to_rgb(inks, image.pixels);
    return image;
  }

 private:
  void require(bool done) const {
    if (!done) throw FileError(name_ + ": damaged JPEG picture: " + error_.message);
  }

  bool create() {
    if (setjmp(error_.back) != 0) return false;
    jpeg_create_decompress(&info_);
    return true;
  }

  bool read_header() {
    if (setjmp(error_.back) != 0) return false;
    jpeg_mem_src(&info_, const_cast<unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool start(int reduction) {
    if (setjmp(error_.back) != 0) return false;
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(reduction);
    jpeg_start_decompress(&info_);
    return true;
  }

  bool read_rows(std::uint8_t* rows, std::size_t row_bytes) {
    if (setjmp(error_.back) != 0) return false;
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = rows + info_.output_scanline * row_bytes;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  void inks_to_rgb(const std::vector<std::uint8_t>& inks, std::vector<std::uint8_t>& rgb) const {
    // Adobe's programs store the inks inverted, and say so only by being Adobe's.
    const int flip = info_.saw_Adobe_marker ? 0 : 255;
    for (std::size_t i = 0; i < rgb.size() / 3; ++i) {
      const int black = inks[4 * i + 3] ^ flip;
      for (std::size_t c = 0; c < 3; ++c) {
        rgb[3 * i + c] = static_cast<std::uint8_t>(((inks[4 * i + c] ^ flip) * black + 127) / 255);
      }
    }
  }

  std::span<const std::uint8_t> bytes_;
  const std::string& name_;
  ErrorState error_{};
  jpeg_decompress_struct info_{};
  bool created_ = false;
};

}  // namespace

ImageSize read_jpeg_size(std::span<const std::uint8_t> bytes, const std::string& name) {
  return JpegDecoder(bytes, name).read_size();
}

Image decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name, int reduction) {
  return JpegDecoder(bytes, name).decode(reduction);
}

#else

ImageSize read_jpeg_size(std::span<const std::uint8_t>, const std::string& name) {
  throw ConfigError(name +
                    ": this build cannot read JPEG pictures; install libjpeg62-turbo-dev "
                    "and build again");
}

Image decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name, int) {
  read_jpeg_size(bytes, name);
  return {};
}

#endif

}  // namespace cohort::data::detail
