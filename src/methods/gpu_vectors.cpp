#include "methods/gpu_vectors.h"

#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "compressors/kept.h"
#include "compressors/random_k.h"
#include "core/error.h"
#include "core/random.h"
#include "gossip/frame.h"
#include "kernels/vector_codec.h"

namespace cohort::methods {
namespace {

using Handle = std::uint64_t;  // bytes

std::optional<kernels::Code> find_code(const std::string& compressor) {
  const std::pair<const char*, kernels::Code> codes[] = {
      {"none", kernels::Code::kFloats}, {"bf16", kernels::Code::kBf16},
      {"fp16", kernels::Code::kFp16},   {"sign", kernels::Code::kSign},
      {"top-k", kernels::Code::kTopK},  {"random-k", kernels::Code::kRandomK},
      {"qsgd", kernels::Code::kQsgd}};
  for (const auto& [name, code] : codes) {
    if (compressor == name) return code;
  }
  return std::nullopt;
}

// The same tensors in main memory, where there is no padding.
std::vector<Range> packed(const std::vector<Range>& tensors) {
  std::vector<Range> all;
  for (const Range& tensor : tensors) {
    all.push_back({all.empty() ? 0 : all.back().end(), tensor.size});
  }
  return all;
}

// With what the kernels have to know of each.
std::vector<kernels::CodedTensor> coded(kernels::Code code,
                                        const compressors::CompressorOptions& options,
                                        const compressors::Compressor& compressor,
                                        const std::vector<Range>& tensors) {
  std::vector<kernels::CodedTensor> all;
  for (const Range& tensor : tensors) {
    kernels::CodedTensor& one = all.emplace_back();
    one.place = tensor;
    if (code == kernels::Code::kTopK || code == kernels::Code::kRandomK) {
      const auto size = static_cast<std::size_t>(tensor.size);
      one.kept =
          size == 0 ? 0 : static_cast<std::int64_t>(compressors::detail::kept(size, options.ratio));
    }
    if (code == kernels::Code::kRandomK && !options.biased && one.kept > 0) {
      one.factor = static_cast<double>(tensor.size) / static_cast<double>(one.kept);
    } else if (code == kernels::Code::kQsgd && options.biased) {
      one.factor = compressor.contraction(tensor.size);
    }
  }
  return all;
}

class SharedGpuVectors final : public GpuVectors {
 public:
  SharedGpuVectors(kernels::Code code, const compressors::CompressorOptions& options,
                   const compressors::ModelCodec& codec, const std::vector<Range>& tensors,
                   std::int64_t numel, std::shared_ptr<kernels::MessageBoard> board)
      : counted_(codec.max_encoded_bytes()),
        numel_(static_cast<std::size_t>(numel)),
        seed_(options.seed),
        tensors_(tensors),
        packed_(codec.tensors().begin(), codec.tensors().end()),
        board_(std::move(board)),
        stream_(c10::cuda::getCurrentCUDAStream().stream()),
        codec_(code, coded(code, options, codec.compressor(), tensors), (1U << options.bits) - 1,
               stream_) {
    if (code == kernels::Code::kRandomK) {
      random_k_.emplace(options.seed, options.ratio, options.biased);
    }
  }

  std::span<float> make() override {
    return {all_.emplace_back(numel_ * sizeof(float)).as<float>(), numel_};
  }

  void clear(std::span<float> y) override {
    give([=, this] { kernels::clear(y, stream_); });
  }

  void copy(std::span<const float> from, std::span<float> to) override {
    if (!kernels::in_gpu_memory(to.data())) {
      read(from, to);
    } else if (kernels::in_gpu_memory(from.data())) {
      give([=, this] { kernels::copy(from, to, stream_); });
    } else {
      give([=, this, padded = padded(from)] {
        kernels::copy_and_wait(to.data(), padded.data(), to.size_bytes(), stream_);
      });
    }
  }

  void combine(std::span<float> out, float a, std::span<const float> x, float b,
               std::span<const float> y) override {
    give([=, this] { kernels::combine(out, a, x.data(), b, y.data(), stream_); });
  }

  void encode(std::span<const float> x, Rank sender, std::uint64_t sequence,
              Bytes& message) override {
    COHORT_CHECK(on_own_thread(), "messages are made by the thread that trains");
    give([&] {
      kernels::MessageBoard::Slot& slot = board_->slot(sender, sequence);
      if (slot.memory == nullptr) {
        slot.memory = std::make_unique<kernels::GpuMemory>(codec_.message_bytes());
        slot.written = std::make_unique<kernels::GpuEvent>();
      }
      if (random_k_) draw({sender, sequence, 0});
      const std::uint64_t key =
          derive_seed(seed_, "qsgd", {static_cast<std::uint64_t>(sender), sequence});
      codec_.encode(x.data(), sequence, key, slot.memory->as<void>());
      slot.written->record(stream_);
    });
    const Handle handle = counted_;
    message.resize(sizeof handle);
    std::memcpy(message.data(), &handle, sizeof handle);
  }

  void decode_add(std::span<const std::byte> message, Rank sender, std::uint64_t sequence,
                  float weight, std::span<float> y) override {
    decode(message, sender, sequence, 1, weight, y);
  }

  void decode_blend(std::span<const std::byte> message, Rank sender, std::uint64_t sequence,
                    float share, std::span<float> y) override {
    decode(message, sender, sequence, 1.0F - share, share, y);
  }

  std::uint64_t first_infinite() override {
    std::uint64_t first = kNever;
    give([&] { first = codec_.first_infinite(); });
    return first;
  }

 private:
  bool on_own_thread() const { return std::this_thread::get_id() == thread_; }

  void give(std::function<void()> work) {
    if (!on_own_thread()) {
      waiting_.push_back(std::move(work));
      return;
    }
    for (; !waiting_.empty(); waiting_.pop_front()) waiting_.front()();
    work();
    given_.record(stream_);
  }

  void decode(std::span<const std::byte> message, Rank sender, std::uint64_t sequence, float keep,
              float weight, std::span<float> y) {
    Handle handle = 0;
    if (message.size() == sizeof handle) std::memcpy(&handle, message.data(), sizeof handle);
    if (handle != counted_) {
      throw PeerError("message " + std::to_string(sequence) + " of rank " + std::to_string(sender) +
                      " is not one that lies in the GPU's memory");
    }
    give([=, this] {
      const kernels::MessageBoard::Slot& slot = board_->slot(sender, sequence);
      slot.written->hold(stream_);
      codec_.decode(slot.memory->as<void>(), keep, weight, y.data());
    });
  }

  // The elements that random-k sends: drawn as in main memory, where it is quick.
  void draw(compressors::MessageKey key) {
    auto place = codec_.drawn(key.sequence).begin();
    for (const Range& tensor : tensors_) {
      for (const std::uint32_t i : random_k_->indices(static_cast<std::size_t>(tensor.size), key)) {
        *place++ = static_cast<std::uint32_t>(tensor.begin) + i;
      }
      ++key.tensor;
    }
  }

  // A neighbour asks for estimates on another thread, while this one's stream may be recorded: what
  // is read so is changed by no work that waits.
  void read(std::span<const float> from, std::span<float> to) {
    std::vector<float> padded(numel_);
    if (on_own_thread()) {
      give([&] { kernels::copy_and_wait(padded.data(), from.data(), from.size_bytes(), stream_); });
    } else {
      given_.wait();
      kernels::copy_and_wait(padded.data(), from.data(), from.size_bytes(), nullptr);
    }
    for (std::size_t n = 0; n < tensors_.size(); ++n) {
      std::memcpy(to.data() + packed_[n].begin, padded.data() + tensors_[n].begin,
                  static_cast<std::size_t>(tensors_[n].size) * sizeof(float));
    }
  }

  std::vector<float> padded(std::span<const float> values) const {
    std::vector<float> all(numel_);
    for (std::size_t n = 0; n < tensors_.size(); ++n) {
      std::memcpy(all.data() + tensors_[n].begin, values.data() + packed_[n].begin,
                  static_cast<std::size_t>(tensors_[n].size) * sizeof(float));
    }
    return all;
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  const std::size_t counted_;  // the bytes of a message in main memory, at most
  const std::size_t numel_;
  const Seed seed_;
  const std::vector<Range> tensors_;
  const std::vector<Range> packed_;
  const std::shared_ptr<kernels::MessageBoard> board_;
  CUstream_st* const stream_;
  kernels::VectorCodec codec_;
  std::optional<compressors::RandomK> random_k_;
  std::deque<kernels::GpuMemory> all_;
  std::deque<std::function<void()>> waiting_;  // what other threads asked for
  kernels::GpuEvent given_;                    // follows all that the stream was given
};

}  // namespace

std::shared_ptr<GpuVectors> make_gpu_vectors(const gossip::GossipSettings& settings,
                                             const std::vector<Range>& tensors, std::int64_t numel,
                                             const std::shared_ptr<kernels::MessageBoard>& board) {
  const auto code = find_code(settings.compressor);
  if (board == nullptr || !code) return nullptr;
  const compressors::ModelCodec codec(
      compressors::compressors().make(settings.compressor, settings.compression), packed(tensors));
  return std::make_shared<SharedGpuVectors>(*code, settings.compression, codec, tensors, numel,
                                            board);
}

std::size_t counted_bytes(std::span<const std::byte> frame) {
  if (frame.size() != gossip::kGossipHeaderBytes + sizeof(Handle)) return frame.size();
  if (gossip::parse_gossip_header(frame).kind != gossip::GossipKind::kMessage) return frame.size();
  Handle handle = 0;
  std::memcpy(&handle, frame.data() + gossip::kGossipHeaderBytes, sizeof handle);
  return gossip::kGossipHeaderBytes + handle;
}

}  // namespace cohort::methods
