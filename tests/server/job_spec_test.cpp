#include "server/job_spec.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"

namespace cohort::server {
namespace {

JobSpec full() {
  JobSpec spec;
  spec.workers = 4;
  spec.servers = 3;
  spec.server = 2;
  spec.size = 100;
  spec.mode = ServerMode::kBounded;
  spec.staleness = 5;
  spec.backup_workers = 1;
  spec.delay_compensation = 0.04;
  spec.wire = WireFormat::kBfloat16;
  spec.optimizer = "adam";
  spec.optimizer_options = {
      .momentum = 0.85, .nesterov = true, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-7};
  spec.decay = {{.range = {0, 60}, .weight_decay = 1e-4}, {.range = {60, 40}, .weight_decay = 0}};
  spec.schedule = "piecewise";
  spec.schedule_options.milestones = {1.5, 3};
  spec.schedule_options.values = {0.1, 0.3, 1.0 / 3.0};
  spec.warmup_epochs = 0.5;
  spec.warmup_from = 0.01;
  spec.updates_per_epoch = 312.5;
  spec.total_updates = 1000;
  spec.layout_digest = "abc";
  spec.settings = R"({"batch-size":32})";
  return spec;
}

TEST(JobSpec, IsTheSameAfterTravelling) {
  const std::string text = to_json(full()).dump();
  const JobSpec back = job_spec_from(text);
  EXPECT_EQ(to_json(back).dump(), text);
  EXPECT_EQ(differences(full(), back), "");
  EXPECT_EQ(back.schedule_options.values[2], 1.0 / 3.0);
  EXPECT_EQ(back.decay[1].range, (Range{60, 40}));
  EXPECT_EQ(back.optimizer_options.epsilon, 1e-7);
}

TEST(JobSpec, EveryFieldTravels) {
  // A field that to_json forgets would keep its default, and an equal text would not tell.
  const JobSpec back = job_spec_from(to_json(full()).dump());
  const JobSpec plain;
  EXPECT_NE(back.workers, plain.workers);
  EXPECT_NE(back.servers, plain.servers);
  EXPECT_NE(back.server, plain.server);
  EXPECT_NE(back.size, plain.size);
  EXPECT_NE(back.mode, plain.mode);
  EXPECT_NE(back.staleness, plain.staleness);
  EXPECT_NE(back.backup_workers, plain.backup_workers);
  EXPECT_NE(back.delay_compensation, plain.delay_compensation);
  EXPECT_NE(back.wire, plain.wire);
  EXPECT_NE(back.optimizer, plain.optimizer);
  EXPECT_NE(back.optimizer_options.nesterov, plain.optimizer_options.nesterov);
  EXPECT_NE(back.schedule, plain.schedule);
  EXPECT_NE(back.warmup_epochs, plain.warmup_epochs);
  EXPECT_NE(back.warmup_from, plain.warmup_from);
  EXPECT_NE(back.updates_per_epoch, plain.updates_per_epoch);
  EXPECT_NE(back.total_updates, plain.total_updates);
  EXPECT_NE(back.layout_digest, plain.layout_digest);
  EXPECT_NE(back.settings, plain.settings);
}

TEST(JobSpec, NumbersOutOfBoundsArePeerErrors) {
  const auto with = [](const char* key, nlohmann::json value) {
    nlohmann::json changed = to_json(full());
    changed[nlohmann::json::json_pointer(key)] = std::move(value);
    return changed.dump();
  };
  const std::vector<std::string> wrong = {
      with("/workers", 0),
      with("/workers", -1),
      with("/workers", 1.5),
      with("/workers", 1e300),
      with("/workers", 18446744073709551615ULL),
      with("/workers", "4"),
      with("/server", 3),
      with("/size", -1),
      with("/size", std::int64_t{1} << 40),
      with("/size", 99),   // the decay does not fit
      with("/size", 101),  // nor here
      with("/mode", "hogwild"),
      with("/wire-format", 3),
      with("/staleness", -1),
      with("/backup-workers", 4),
      with("/optimizer", "none"),
      with("/optimizer-options", nullptr),
      with("/optimizer-options/beta1", 2),
      with("/schedule", "none"),
      with("/schedule-options/lr", -1),
      with("/schedule-options/lr-values", {1, 2}),
      with("/schedule-options/lr-milestones", {2, 1}),
      with("/schedule-options/epochs", 0),
      with("/updates-per-epoch", 0),
      with("/updates-per-epoch", std::numeric_limits<double>::quiet_NaN()),
      with("/weight-decay/0/size", -5),
      with("/weight-decay/0/size", std::int64_t{1} << 62),
      with("/settings", "[1"),
      with("/settings", "[1]"),
      with("/unknown", 1),
      "",
      "[]",
      "{}",
      std::string(100000, '['),
  };
  for (const std::string& text : wrong) {
    EXPECT_THROW(job_spec_from(text), PeerError) << text.substr(0, 400);
  }
}

TEST(JobSpec, DamageIsAPeerErrorOrAnotherSoundSpecification) {
  const std::string text = to_json(full()).dump();
  RandomStream random(4, "damage");
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    }
    try {
      const JobSpec spec = job_spec_from(damaged);
      EXPECT_GE(spec.workers, 1);
      EXPECT_LE(spec.size, kMaxArena);
    } catch (const PeerError&) {
    }
  }
}

TEST(JobSpec, DifferencesNameTheSettings) {
  JobSpec other = full();
  other.schedule_options.lr = 0.5;
  other.optimizer_options.beta1 = 0.7;
  other.layout_digest = "abd";
  other.settings = R"({"batch-size":64,"augment":true})";
  const std::string text = differences(full(), other);
  EXPECT_NE(text.find("--lr is 0.5 here and 0.01 at the others"), std::string::npos) << text;
  EXPECT_NE(text.find("--beta1 is 0.7 here and 0.8 at the others"), std::string::npos) << text;
  EXPECT_NE(text.find("--batch-size is 64 here and 32 at the others"), std::string::npos) << text;
  EXPECT_NE(text.find("--augment is true here and not set at the others"), std::string::npos);
}

TEST(JobSpec, DifferencesNameEachSettingOnceAndByItsFlag) {
  JobSpec first = full();
  first.mode = ServerMode::kAsync;
  first.staleness = 0;
  first.settings = R"({"lr":0.01,"server-mode":"async"})";
  JobSpec other = first;
  other.mode = ServerMode::kSync;
  other.schedule_options.lr = 0.5;
  other.updates_per_epoch = 7;  // follows from the mode
  other.total_updates = 70;
  other.layout_digest = "abd";
  other.settings = R"({"lr":0.5,"server-mode":"sync"})";
  EXPECT_EQ(differences(first, other),
            "--lr is 0.5 here and 0.01 at the others; "
            "--server-mode is \"sync\" here and \"async\" at the others");
  other = first;
  other.layout_digest = "abd";
  EXPECT_EQ(differences(first, other), "the models differ in names, shapes or sharding");
  other = first;
  other.updates_per_epoch = 7;
  EXPECT_THAT(differences(first, other), testing::HasSubstr("7.0 updates an epoch here"));
  other = first;
  other.schedule_options.gamma = 0.5;  // whatever the further settings say
  EXPECT_THAT(differences(first, other), testing::HasSubstr("--lr-gamma is 0.5 here"));
  EXPECT_EQ(differences(first, first), "");
}

TEST(JobSpec, NamesOfModesAndFormats) {
  EXPECT_EQ(parse_server_mode("ssp"), ServerMode::kBounded);
  EXPECT_EQ(to_text(ServerMode::kAsync), "async");
  EXPECT_EQ(parse_wire_format("float16"), WireFormat::kFloat16);
  EXPECT_EQ(bytes_each(WireFormat::kFloat32), 4U);
  EXPECT_EQ(bytes_each(WireFormat::kBfloat16), 2U);
  EXPECT_THROW(parse_server_mode("hogwild"), ConfigError);
  EXPECT_THROW(parse_wire_format("int8"), ConfigError);
}

}  // namespace
}  // namespace cohort::server
