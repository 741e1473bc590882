// Two ends of a link over each way a link can go, for the tests of what every link promises.
#pragma once

#include <gtest/gtest.h>

#include "network/link_pair.h"

namespace cohort::network {

enum class LinkKind { kTcp, kToken, kCertificates, kUnix, kSharedMemory };

struct LinkWay {
  std::string name;
  LinkKind kind;
  std::string says;  // in peer_text()
};

inline void PrintTo(const LinkWay& way, std::ostream* out) { *out << way.name; }

class LinkConformance : public ::testing::TestWithParam<LinkWay> {
 protected:
  static void SetUpTestSuite() {
    certificates_ = new test::PrivateFolder;
    make_authority(std::filesystem::path(certificates_->path()) / "tls", job_id_of("test"), 1, 4);
  }
  static void TearDownTestSuite() {
    delete certificates_;
    certificates_ = nullptr;
  }

  void SetUp() override {
    const LinkKind kind = GetParam().kind;
    listening_ = {.address = {.host = "127.0.0.1"}, .self = test::server(0)};
    connecting_ = {.address = {}, .self = test::worker(3), .peer = listening_.self};
    if (kind == LinkKind::kUnix || kind == LinkKind::kSharedMemory) {
      listening_.runtime_folder = connecting_.runtime_folder = folder_.path();
    }
    listening_.shared_memory = kind == LinkKind::kSharedMemory;
    Credentials& here = listening_.credentials;
    Credentials& there = connecting_.credentials;
    here.always = there.always = true;
    if (kind == LinkKind::kToken) here.token = there.token = std::string(64, 'a');
    if (kind == LinkKind::kCertificates) {
      const std::filesystem::path folder(certificates_->path() + "/tls");
      here.tls_dir = folder / "server-0";
      there.tls_dir = folder / "worker-3";
    }
  }

  void make(LinkOptions options = {}) {
    listening_.links = connecting_.links = options;
    pair_ = test::join(io_, listening_, connecting_);
    ASSERT_TRUE(pair_->accepted && pair_->connected)
        << (pair_->failure ? pair_->failure->reason : "no link");
  }
  void make_and_listen(LinkOptions options = {}) {
    ASSERT_NO_FATAL_FAILURE(make(options));
    pair_->accepted->set_handler(at_server_);
    pair_->connected->set_handler(at_worker_);
  }

  static inline test::PrivateFolder* certificates_ = nullptr;

  test::PrivateFolder folder_;
  boost::asio::io_context io_{1};
  ListenerOptions listening_;
  ConnectorOptions connecting_;
  test::Recorder at_server_;
  test::Recorder at_worker_;
  std::unique_ptr<test::Pair> pair_;
};

}  // namespace cohort::network
