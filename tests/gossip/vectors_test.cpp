#include "gossip/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compressors/registry.h"
#include "core/error.h"

namespace cohort::gossip {
namespace {

using testing::Each;
using testing::ElementsAre;

std::unique_ptr<GossipVectors> vectors_with(const std::string& compressor) {
  return make_host_vectors(std::make_shared<compressors::ModelCodec>(
      compressors::compressors().make(compressor, {.ratio = 0.5}),
      std::vector<Range>{{0, 1}, {1, 3}}));
}

TEST(HostVectors, BeginWithZerosAndStayWhereTheyAre) {
  const auto vectors = vectors_with("none");
  const auto first = vectors->make();
  EXPECT_EQ(first.size(), 4U);
  EXPECT_THAT(first, Each(0.0F));
  first[3] = 5;
  for (int i = 0; i < 100; ++i) vectors->make();
  EXPECT_EQ(first[3], 5);
  const std::vector<float> other = {1, 2, 3, 4};
  vectors->copy(other, first);
  EXPECT_THAT(first, ElementsAre(1, 2, 3, 4));
  vectors->clear(first);
  EXPECT_THAT(first, Each(0.0F));
}

// Into another vector and into either of the two.
TEST(HostVectors, CombineWithEachOperationRounded) {
  const auto vectors = vectors_with("none");
  const auto x = vectors->make();
  const auto y = vectors->make();
  const auto out = vectors->make();
  const float values[] = {0.1F, 1e8F, -3.3F, 7};
  const float others[] = {0.7F, 3, 1e-9F, -7};
  const std::pair<float, float> factors[] = {{1, 1}, {1, -1}, {1, 0.3F}, {0.3F, 1}, {0.7F, 0.3F}};
  for (const auto& [a, b] : factors) {
    for (const int into : {0, 1, 2}) {
      vectors->copy(values, x);
      vectors->copy(others, y);
      const auto to = into == 0 ? out : into == 1 ? x : y;
      vectors->combine(to, a, x, b, y);
      for (std::size_t i = 0; i < 4; ++i) {
        const volatile float p = a * values[i];
        const volatile float q = b * others[i];
        EXPECT_EQ(to[i], p + q) << a << ' ' << b << ' ' << into << ' ' << i;
      }
    }
  }
}

TEST(HostVectors, BlendInWhatAMessageBringsAndLeaveTheRest) {
  const auto vectors = vectors_with("top-k");
  const auto x = vectors->make();
  const std::vector<float> values = {8, 1, -4, 2};
  vectors->copy(values, x);
  Bytes message;
  vectors->encode(x, 0, 1, message);  // one element of each tensor
  const auto y = vectors->make();
  vectors->copy(std::vector<float>{10, 10, 10, 10}, y);
  vectors->decode_blend(message, 0, 1, 0.25F, y);
  EXPECT_THAT(y, ElementsAre(9.5F, 10, 6.5F, 10));
  vectors->decode_add(message, 0, 1, 0.5F, y);
  EXPECT_THAT(y, ElementsAre(13.5F, 10, 4.5F, 10));
  message.pop_back();
  EXPECT_THROW(vectors->decode_add(message, 0, 1, 1, y), PeerError);
}

}  // namespace
}  // namespace cohort::gossip
