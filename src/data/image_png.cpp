#include "core/error.h"
#include "data/image_codec.h"

#ifdef COHORT_WITH_PNG
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#endif

namespace cohort::data::detail {

#ifdef COHORT_WITH_PNG
namespace {

// Errors jump, as in image_jpeg.cpp and for the same reason.
class PngDecoder {
 public:
  PngDecoder(std::span<const std::uint8_t> bytes, const std::string& name)
      : rest_(bytes), file_bytes_(bytes.size()), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw RunError("libpng could not be started");
    }
    png_set_user_limits(png_, kMaxImageSide, kMaxImageSide);
    png_set_read_fn(png_, this, on_read);
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  ImageSize read_size() {
    require(read_header());
    const std::uint64_t width = png_get_image_width(png_, info_);
    const std::uint64_t height = png_get_image_height(png_, info_);
    check_image_size(width, height, file_bytes_, name_);
    return {static_cast<int>(width), static_cast<int>(height)};
  }

  Image decode() {
    Image image;
    image.size = read_size();
    require(start());
    const auto row_bytes = static_cast<std::size_t>(image.size.width) * 3;
    if (png_get_rowbytes(png_, info_) != row_bytes) {
      throw FileError(name_ + ": an unusual PNG picture that did not turn into RGB");
    }
    image.pixels.resize(row_bytes * static_cast<std::size_t>(image.size.height));
    std::vector<png_bytep> rows(static_cast<std::size_t>(image.size.height));
    for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
    require(read_rows(rows.data()));
    return image;
  }

 private:
  void require(bool done) const {
    if (!done) throw FileError(name_ + ": damaged PNG picture: " + message_);
  }

  bool read_header() {
    if (setjmp(back_) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }

  bool start() {
    if (setjmp(back_) != 0) return false;
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytep* rows) {
    if (setjmp(back_) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof(self->message_), "%s", message);
    std::longjmp(self->back_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep out, std::size_t size) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self->rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(out, self->rest_.data(), size);
    self->rest_ = self->rest_.subspan(size);
  }

  std::span<const std::uint8_t> rest_;
  std::size_t file_bytes_;
  const std::string& name_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf back_{};
  char message_[200] = {};
};

}  // namespace

ImageSize read_png_size(std::span<const std::uint8_t> bytes, const std::string& name) {
  return PngDecoder(bytes, name).read_size();
}

Image decode_png(std::span<const std::uint8_t> bytes, const std::string& name) {
  return PngDecoder(bytes, name).decode();
}

#else

ImageSize read_png_size(std::span<const std::uint8_t>, const std::string& name) {
  throw ConfigError(name +
                    ": this build cannot read PNG pictures; install libpng-dev and build again");
}

Image decode_png(std::span<const std::uint8_t> bytes, const std::string& name) {
  read_png_size(bytes, name);
  return {};
}

#endif

}  // namespace cohort::data::detail
