#include "apps/bench_compress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collectives/one_gpu.h"
#include "compressors/model_codec.h"
#include "compressors/registry.h"
#include "core/aligned_vector.h"
#include "core/error.h"
#include "core/random.h"
#include "engine/device.h"
#include "methods/device_work.h"
#include "methods/gpu_vectors.h"

namespace cohort::apps {
namespace {

struct CompressBench {
  std::int64_t size = 0;
  bool model_sizes = false;
  std::vector<std::string> compressors = compressors::compressors().names();
  compressors::CompressorOptions options;
  int rounds = 15;
  double round_seconds = 0.02;
  std::string device = "cpu";
};

// The tensors of ResNet-20 for CIFAR-10, with projections in its shortcuts.
std::vector<std::int64_t> resnet20_sizes() {
  std::vector<std::int64_t> sizes = {432, 16, 16};
  std::int64_t width = 16;
  for (const std::int64_t stage : {16, 32, 64}) {
    for (int block = 0; block < 3; ++block) {
      sizes.insert(sizes.end(), {9 * width * stage, stage, stage});
      sizes.insert(sizes.end(), {9 * stage * stage, stage, stage});
      if (width != stage) sizes.insert(sizes.end(), {width * stage, stage, stage});
      width = stage;
    }
  }
  sizes.insert(sizes.end(), {640, 10});
  return sizes;
}

// Each begins at a multiple of `alignment` elements.
std::vector<Range> tensors_of(const std::vector<std::int64_t>& sizes, std::int64_t alignment) {
  std::vector<Range> tensors;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    tensors.push_back({begin, size});
    begin += (size + alignment - 1) / alignment * alignment;
  }
  return tensors;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The processor's time of this thread, which other programs on the machine disturb less than the
// time on the wall; the same where there are none, as nothing here waits.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Operation = std::function<void()>;

double seconds_here(const Operation& operation, int count) {
  const double start = thread_seconds();
  for (int i = 0; i < count; ++i) operation();
  return thread_seconds() - start;
}

// Of the device's clock.
double seconds_on(at::Device device, const Operation& operation, int count) {
  const methods::DeviceMoment start = methods::DeviceMoment::now(device);
  for (int i = 0; i < count; ++i) operation();
  const methods::DeviceMoment end = methods::DeviceMoment::now(device);
  end.wait();
  return end.seconds_since(start);
}

// Times operations by turns, so that what else the machine does meets all of them.
std::vector<double> median_seconds(const CompressBench& bench,
                                   const std::function<double(const Operation&, int)>& time,
                                   const std::vector<Operation>& operations) {
  std::vector<int> counts;
  for (const auto& operation : operations) {
    int count = 1;
    while (time(operation, count) < bench.round_seconds / 2 && count < 1 << 20) count *= 2;
    counts.push_back(count);
  }
  std::vector<std::vector<double>> seconds(operations.size());
  for (int round = 0; round < bench.rounds; ++round) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      seconds[i].push_back(time(operations[i], counts[i]) / counts[i]);
    }
  }
  std::vector<double> medians;
  for (auto& each : seconds) medians.push_back(median(std::move(each)));
  return medians;
}

std::vector<float> noise(const CompressBench& bench, const std::vector<std::int64_t>& sizes) {
  std::vector<float> values(static_cast<std::size_t>(tensors_of(sizes, 1).back().end()));
  RandomStream random(bench.options.seed, "bench-compress");
  for (float& value : values) value = static_cast<float>(0.01 * random.normal());
  return values;
}

// `seconds`: of a copy, of encoding, decoding and adding what is decoded.
void report(const CompressBench& bench, const std::string& vector, std::size_t numel,
            const compressors::ModelCodec& codec, std::size_t bytes,
            const std::vector<double>& seconds) {
  const double gigabytes = 1e-9 * static_cast<double>(numel * sizeof(float));
  const std::string name(codec.compressor().name());
  nlohmann::json line = {{"bench", "compress"},
                         {"device", bench.device},
                         {"vector", vector},
                         {"numel", numel},
                         {"tensors", codec.tensors().size()},
                         {"compressor", name},
                         {"bytes", bytes},
                         {"copy_gb_per_s", gigabytes / seconds[0]},
                         {"encode_gb_per_s", gigabytes / seconds[1]},
                         {"decode_gb_per_s", gigabytes / seconds[2]},
                         {"decode_add_gb_per_s", gigabytes / seconds[3]},
                         {"encode_of_copy", seconds[0] / seconds[1]},
                         {"decode_of_copy", seconds[0] / seconds[2]},
                         {"gb_per_s", gigabytes / (seconds[1] + seconds[2])},
                         {"of_copy", seconds[0] / (seconds[1] + seconds[2])}};
  if (name == "qsgd") line["bits"] = bench.options.bits;
  if (codec.sparse()) line["ratio"] = bench.options.ratio;
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void measure_here(const CompressBench& bench, const std::string& vector,
                  const std::vector<std::int64_t>& sizes) {
  const std::vector<float> drawn = noise(bench, sizes);
  const AlignedVector<float> values(drawn.begin(), drawn.end());
  AlignedVector<float> decoded(values.size());
  for (const std::string& name : bench.compressors) {
    compressors::ModelCodec codec(compressors::compressors().make(name, bench.options),
                                  tensors_of(sizes, 1));
    Bytes wire;
    std::uint64_t sequence = 0;
    const auto seconds = median_seconds(
        bench, seconds_here,
        {[&] { std::memcpy(decoded.data(), values.data(), values.size() * sizeof(float)); },
         [&] { codec.encode(values, 0, ++sequence, wire); },
         [&] { codec.decode(wire, 0, sequence, decoded); },
         [&] { codec.decode_add(wire, 0, sequence, 0.5F, decoded); }});
    report(bench, vector, values.size(), codec, wire.size(), seconds);
  }
}

// As a gossiping worker does it in a GPU's memory; there a message is decoded into an estimate.
void measure_on(at::Device device, const CompressBench& bench, const std::string& vector,
                const std::vector<std::int64_t>& sizes) {
  const methods::DeviceStream stream(device);
  const std::vector<float> drawn = noise(bench, sizes);
  const std::vector<Range> places = tensors_of(sizes, 16);
  for (const std::string& name : bench.compressors) {
    const gossip::GossipSettings settings{.compressor = name, .compression = bench.options};
    const auto vectors = methods::make_gpu_vectors(settings, places, places.back().end(),
                                                   collectives::make_message_board(1));
    if (vectors == nullptr) throw ConfigError("this build has no kernels for --device");
    const auto values = vectors->make();
    const auto decoded = vectors->make();
    vectors->copy(drawn, values);
    Bytes message;
    std::uint64_t sequence = 0;
    const auto seconds = median_seconds(
        bench,
        [&](const Operation& operation, int count) { return seconds_on(device, operation, count); },
        {[&] { vectors->copy(values, decoded); },
         [&] { vectors->encode(values, 0, ++sequence, message); },
         [&] { vectors->decode_blend(message, 0, sequence, 0.5F, decoded); },
         [&] { vectors->decode_add(message, 0, sequence, 0.5F, decoded); }});
    const compressors::ModelCodec codec(compressors::compressors().make(name, bench.options),
                                        tensors_of(sizes, 1));
    report(bench, vector, drawn.size(), codec, codec.max_encoded_bytes(), seconds);
  }
}

void measure(const CompressBench& bench, const std::string& vector,
             const std::vector<std::int64_t>& sizes) {
  const at::Device device = engine::parse_device(bench.device);
  device.is_cpu() ? measure_here(bench, vector, sizes) : measure_on(device, bench, vector, sizes);
}

void run_compress_bench(const CompressBench& bench) {
  for (const std::string& name : bench.compressors)
    compressors::compressors().make(name, bench.options);
  constexpr std::int64_t kLong = 16 << 20;
  if (bench.size > 0 || !bench.model_sizes) {
    measure(bench, "one tensor", {bench.size > 0 ? bench.size : kLong});
  }
  if (bench.size == 0 || bench.model_sizes) measure(bench, "resnet20", resnet20_sizes());
}

}  // namespace

void add_compress_bench(CLI::App& bench_command) {
  CLI::App* command = bench_command.add_subcommand(
      "compress",
      "GB of float32 a second that each compressor takes, on one core or a GPU, beside a copy");
  auto bench = std::make_shared<CompressBench>();
  command
      ->add_option("--size", bench->size,
                   "elements of one tensor; default: 16777216, and ResNet-20's tensors")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command->add_flag("--model-sizes", bench->model_sizes, "the 65 tensors of ResNet-20");
  command->add_option("--compressors", bench->compressors, "which of them")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--ratio", bench->options.ratio, "share that top-k and random-k drop")
      ->capture_default_str();
  command->add_option("--bits", bench->options.bits, "of qsgd")->capture_default_str();
  command->add_flag("--biased", bench->options.biased, "the contracting forms");
  command->add_option("--device", bench->device, "cpu, or cuda: in a GPU's memory, as gossip there")
      ->capture_default_str();
  command->add_option("--rounds", bench->rounds, "the median of so many is reported")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--round-seconds", bench->round_seconds, "operations of a round take so long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([bench] { run_compress_bench(*bench); });
}

}  // namespace cohort::apps
