#include <spdlog/fmt/fmt.h>

#include "apps/checkpoint_choice.h"
#include "apps/command.h"
#include "apps/environment.h"
#include "apps/exported_model.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/run_directory.h"

namespace cohort::apps {
namespace {

struct ExportFlags {
  std::string run;
  std::string which = "best";
  std::string output = "model.safetensors";
};

void run_export(const ExportFlags& flags) {
  const storage::LoadedCheckpoint checkpoint = choose_checkpoint(flags.run, flags.which);
  storage::save_safetensors(flags.output, checkpoint.model.tensors(),
                            export_metadata(engine::read_run_config(run_of(flags.run))));
  fmt::print("{}: {} tensors of {}\n", flags.output, checkpoint.model.tensors().size(),
             checkpoint.folder.string());
}

}  // namespace

void add_export(CLI::App& program, Invocation&) {
  CLI::App* command =
      program.add_subcommand("export", "Write a trained model for PyTorch (safetensors)");
  auto flags = std::make_shared<ExportFlags>();
  command->add_option("run", flags->run, "run directory, or one checkpoint folder")->required();
  command->add_option("--which", flags->which, "best, latest or a step")->capture_default_str();
  command->add_option("-o,--output", flags->output, "file to write")->capture_default_str();
  command->callback([flags] { run_export(*flags); });
}

}  // namespace cohort::apps
