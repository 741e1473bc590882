#include "storage/worker_folder.h"

#include <gtest/gtest.h>

namespace cohort::storage {
namespace {

TEST(WorkerFolder, IsNamedAfterTheFirstOnesAndTheRank) {
  EXPECT_EQ(worker_folder("runs/a", 0), "runs/a");
  EXPECT_EQ(worker_folder("runs/a", 1), "runs/a-worker1");
  EXPECT_EQ(worker_folder("runs/a/", 12), "runs/a-worker12");
}

TEST(WorkerFolder, IsReadBack) {
  const auto found = parse_worker_folder("runs/a-worker1-worker12/");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->run, "runs/a-worker1");
  EXPECT_EQ(found->rank, 12);
  for (const char* other : {"runs/a", "runs/a-worker", "a-worker0", "a-worker01", "a-worker-1",
                            "a-worker1b", "-worker1", "a-worker99999999999"}) {
    EXPECT_FALSE(parse_worker_folder(other)) << other;
  }
}

TEST(ServerFolder, IsNamedAfterTheFirstWorkersAndReadBack) {
  EXPECT_EQ(server_folder("runs/a/"), "runs/a-server");
  EXPECT_EQ(parse_server_folder("runs/a-server/"), "runs/a");
  for (const char* other : {"runs/a", "-server", "runs/a-server-001"}) {
    EXPECT_FALSE(parse_server_folder(other)) << other;
  }
}

}  // namespace
}  // namespace cohort::storage
