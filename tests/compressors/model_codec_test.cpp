#include "compressors/model_codec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compressors/variants.h"
#include "compressors/vectors.h"
#include "core/error.h"

namespace cohort::compressors {
namespace {

// The tensors of ResNet-20 with projections in its shortcuts, in the model's order.
std::vector<std::int64_t> resnet20_sizes() {
  std::vector<std::int64_t> sizes;
  const auto convolution = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    sizes.push_back(in * out * kernel * kernel);
    sizes.push_back(out);  // the norm's scale and shift
    sizes.push_back(out);
  };
  convolution(3, 16, 3);
  std::int64_t width = 16;
  for (const std::int64_t stage : {16, 32, 64}) {
    for (int block = 0; block < 3; ++block) {
      convolution(width, stage, 3);
      convolution(stage, stage, 3);
      if (width != stage) convolution(width, stage, 1);
      width = stage;
    }
  }
  sizes.push_back(640);
  sizes.push_back(10);
  return sizes;
}

class ModelCodecConformance : public testing::TestWithParam<Variant> {
 protected:
  static ModelCodec codec(const std::vector<std::int64_t>& sizes) {
    return ModelCodec(GetParam().make(3), tensors_of(sizes));
  }
};

TEST_P(ModelCodecConformance, EncodesTensorByTensor) {
  ModelCodec codec = this->codec({70, 0, 3, 1000});
  ASSERT_EQ(codec.numel(), 1073U);
  const std::vector<float> model = gaussian(1073, 1);
  Bytes wire(5);
  codec.encode(model, 6, 9, wire);
  EXPECT_LE(wire.size(), codec.max_encoded_bytes());

  const auto compressor = GetParam().make(3);
  Bytes expected;
  std::vector<float> values(1073);
  std::uint64_t tensor = 0;
  for (const Range& range : codec.tensors()) {
    Bytes bytes;
    const MessageKey key{6, 9, tensor++};
    compressor->encode(std::span(model).subspan(range.begin, range.size), key, bytes);
    compressor->decode(bytes, key, std::span(values).subspan(range.begin, range.size));
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(wire, expected);
  std::vector<float> decoded(1073);
  codec.decode(wire, 6, 9, decoded);
  EXPECT_EQ(decoded, values);
  std::vector<float> sum(1073, 0.25F);
  codec.decode_add(wire, 6, 9, -0.3F, sum);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    volatile float product = -0.3F * values[i];
    ASSERT_EQ(sum[i], 0.25F + product);
  }
}

TEST_P(ModelCodecConformance, RefusesMissingAndLeftOverBytesAndNamesTheSender) {
  ModelCodec codec = this->codec({70, 30});
  Bytes wire;
  codec.encode(gaussian(100, 1), 6, 9, wire);
  std::vector<float> decoded(100);
  Bytes longer = wire;
  longer.push_back(std::byte{0});
  const Bytes shorter(wire.begin(), wire.end() - 1);
  for (const Bytes& bad : {longer, shorter, Bytes{}}) {
    try {
      codec.decode(bad, 6, 9, decoded);
      ADD_FAILURE() << bad.size() << " bytes were taken";
    } catch (const PeerError& error) {
      EXPECT_EQ(std::string(error.what()).find("message 9 of rank 6"), 0U) << error.what();
    }
    EXPECT_THROW(codec.decode_add(bad, 6, 9, 1, decoded), PeerError);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, ModelCodecConformance, testing::ValuesIn(compressor_variants()),
                         [](const auto& test) { return test.param.label; });

TEST(ModelCodec, TakesAModelWithoutTensors) {
  ModelCodec codec(compressors().make("sign", {}), {});
  Bytes wire(3);
  codec.encode({}, 0, 0, wire);
  EXPECT_TRUE(wire.empty());
  codec.decode(wire, 0, 0, {});
  EXPECT_THROW(codec.decode(Bytes(1), 0, 0, {}), PeerError);
}

TEST(ModelCodec, SendsResnet20InThePromisedBytes) {
  const std::vector<std::int64_t> sizes = resnet20_sizes();
  ASSERT_EQ(sizes.size(), 65U);
  struct Promise {
    std::string name;
    double most_mib;
    double least_mib;  // less would be too good to be true
  };
  for (const auto& [name, most_mib, least_mib] :
       {Promise{"none", 1.04, 1.039}, Promise{"qsgd", 0.261, 0.1}, Promise{"sign", 0.033, 0.0324},
        Promise{"top-k", 0.014, 0.0125}, Promise{"random-k", 0.0108, 0.0104}}) {
    ModelCodec codec(compressors().make(name, {.seed = 5}), tensors_of(sizes));
    ASSERT_EQ(codec.numel(), 272474U);
    Bytes wire;
    codec.encode(gaussian(272474, 1, 0.01), 0, 1, wire);
    const double mib = static_cast<double>(wire.size() + 64) / (1 << 20);
    RecordProperty(name, std::to_string(mib));
    EXPECT_LE(mib, most_mib) << name;
    EXPECT_GT(mib, least_mib) << name;
  }
}

}  // namespace
}  // namespace cohort::compressors
