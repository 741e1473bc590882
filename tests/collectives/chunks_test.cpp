#include "collectives/chunks.h"

#include <gtest/gtest.h>

namespace cohort::collectives {
namespace {

TEST(ChunkOf, CoversEverythingOnceInNearlyEqualParts) {
  for (const std::int64_t numel : {0, 1, 2, 7, 8, 9, 1000}) {
    for (int parts = 1; parts <= 9; ++parts) {
      std::int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const Range chunk = chunk_of(numel, parts, part);
        EXPECT_EQ(chunk.begin, next);
        EXPECT_GE(chunk.size, numel / parts);
        EXPECT_LE(chunk.size, (numel + parts - 1) / parts);
        next = chunk.end();
      }
      EXPECT_EQ(next, numel);
    }
  }
}

}  // namespace
}  // namespace cohort::collectives
