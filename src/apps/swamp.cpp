#include "dialects/swamp.h"

#include <spdlog/fmt/fmt.h>

#include <memory>

#include "apps/command.h"
#include "apps/swamp_steps.h"
#include "core/error.h"
#include "core/text.h"
#include "dialects/native_command.h"

namespace cohort::apps {
namespace {

constexpr const char* kSwampExample =
    R"(Example, the experiment's steps as its guide has them but for the program's name:

    cohort swamp train --trainer-number 2 --pull-probability 0.5 --loss-sample-interval 10 \
                       --job-root-dir jobs
    cohort swamp eval --job-root-dir jobs --delete-job-data True --eval-batch-size 64 \
                      --eval-max-batch 200
    cohort swamp plot --job-root-dir jobs
    cohort swamp pdf

or all of it for a grid of settings: cohort swamp batch -t 1 2 4 -p 0 0.5 1)";

// The flags of train.py.
struct TrainFlags {
  SwampTrainRequest request;
  std::string use_gpu = "false";
  std::string validation_data_dir;
  bool explain = false;

  // What is repeated for every job of a grid; a grid has its own lists of the others.
  void add_common(CLI::App& app) {
    dialects::SwampFlags& flags = request.flags;
    app.add_option("--batch-size", flags.batch_size, "images a step")->capture_default_str();
    app.add_option("--epochs", flags.epochs, "times each trainer goes through the training set")
        ->capture_default_str();
    app.add_option("--lr", flags.lr, "learning rate of SGD")->capture_default_str();
    app.add_option("--momentum", flags.momentum, "of SGD")->capture_default_str();
    app.add_option("--free-trial-steps", flags.free_trial_steps,
                   "batches trained on between two probes")
        ->capture_default_str();
    app.add_option("--validate_batch_size,--validate-batch-size", flags.validate_batch_size,
                   "servers fifo and latest: images in a batch of the double check")
        ->capture_default_str();
    app.add_option("--validate_max_batch,--validate-max-batch", flags.validate_max_batch,
                   "likewise: batches of the double check")
        ->capture_default_str();
    app.add_option("--loss-sample-interval,--model-sample-interval", flags.loss_sample_interval,
                   "batches between two dumps of a trainer's model")
        ->capture_default_str();
    app.add_option("--log-interval", flags.log_interval, "batches between two lines of a trainer")
        ->capture_default_str();
    app.add_option("--crossover-probability", flags.crossover_probability,
                   "that a pull takes the mean of both models")
        ->capture_default_str();
    app.add_option("--job-root-dir", request.job_root_dir, "where the jobs' folders are")
        ->capture_default_str();
    app.add_option("--data-type", flags.data_type, "mnist, cifar10 or ImageNet")
        ->capture_default_str();
    app.add_option("--model-name", flags.model_name,
                   "MNISTNet, CIFAR10Net or resnet18 [what suits the data]");
    app.add_option("--use-gpu", use_gpu, "true or false")->capture_default_str();
    app.add_option("--training-data-dir", flags.training_data_dir,
                   "where the data are [the usual places]");
    app.add_option("--validation-data-dir", validation_data_dir,
                   "the same folder: a data set's own test files are used");
    app.add_option("--validation-size", flags.validation_size,
                   "server validated: training images kept apart for comparing models")
        ->capture_default_str()
        ->group(kOwnFlags);
    app.add_option("--keep-dumps", flags.keep_dumps,
                   "most dumps of a trainer, spread over the run; 0: all")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50))
        ->capture_default_str()
        ->group(kOwnFlags);
    app.add_option("--threads", flags.threads, "compute threads of a trainer; 0: choose")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str()
        ->group(kOwnFlags);
  }

  void add_single(CLI::App& app) {
    dialects::SwampFlags& flags = request.flags;
    app.add_option("--seed", flags.seed, "every random choice follows from it")
        ->capture_default_str();
    app.add_option("--trainer-number", flags.trainer_number, "trainers in total")
        ->capture_default_str();
    app.add_option("--pull-probability", flags.pull_probability,
                   "of taking the server's model after a probe that was not better")
        ->capture_default_str();
    app.add_option("--job-name", flags.job_name, "the job's folder [swamp_tT_ppP]");
    app.add_flag("--save-model", request.save_model,
                 "write the best model to best_model.safetensors as well");
    app.add_option("--loss-file", request.loss_file,
                   "picture of the training losses to draw in the job's folder");
    app.add_option("--swamp-server", flags.swamp_server,
                   "fifo, latest or validated [validated]: how the best model is chosen")
        ->check(CLI::IsMember({"fifo", "latest", "validated"}))
        ->group(kOwnFlags);
    app.add_flag("--explain", explain, "print what it trains as a native command, and end")
        ->group(kOwnFlags);
  }

  // Once all flags are there.
  void name_flags_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
    request.flag_names = dialects::flag_names_among(names);
  }

  void complete() {
    request.flags.use_gpu = dialects::parse_swamp_bool("--use-gpu", use_gpu);
    if (validation_data_dir.empty() || validation_data_dir == request.flags.training_data_dir) {
      return;
    }
    throw ConfigError("--validation-data-dir " + validation_data_dir +
                      ": models are tested on the test files of the data set at "
                      "--training-data-dir: leave it out, or give the same folder");
  }
};

void add_eval_options(CLI::App& app, SwampEvalRequest& request) {
  app.add_option("--eval-batch-size", request.batch_size,
                 "images evaluated at once; 0: what is fastest")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  app.add_option("--eval-max-batch", request.max_batch,
                 "batches evaluated, the first of the test set; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--eval-concurrency", request.concurrency,
                 "models evaluated at a time; 0: one for each core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--eval-data-dir", request.data_dir, "where the data are [as in training]");
}

void add_train_command(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = parent.add_subcommand("train", "Train a job, dumping models on the way");
  auto flags = std::make_shared<TrainFlags>();
  flags->add_single(*command);
  flags->add_common(*command);
  flags->name_flags_of(*command);
  command->callback([flags, &invocation] {
    flags->complete();
    if (flags->explain) {
      const std::vector<std::string> extra = {"--runs-dir", flags->request.job_root_dir, "--name",
                                              dialects::swamp_job_name(flags->request.flags)};
      fmt::print("{}\n", dialects::shell_line(dialects::native_command(
                             dialects::translate(flags->request.flags), extra)));
      return;
    }
    invocation.exit_status = train_swamp_job(flags->request, invocation.arguments);
  });
}

void add_eval_command(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = parent.add_subcommand("eval", "Evaluate every dumped model on the test set");
  struct Flags {
    SwampEvalRequest request;
    std::string delete_job_data = "false";
    std::int64_t seed = 1;
  };
  auto flags = std::make_shared<Flags>();
  SwampEvalRequest& request = flags->request;
  command->add_option("--job-root-dir", request.job_root_dir, "where the jobs' folders are")
      ->capture_default_str();
  command->add_option("--job-name", request.job_name, "only this one [all that begin with swamp_]");
  command
      ->add_option("--delete-job-data", flags->delete_job_data,
                   "true: delete dumped models once they are evaluated")
      ->capture_default_str();
  command
      ->add_option("--seed", flags->seed,
                   "taken for the sake of old commands: there is nothing "
                   "random in an evaluation")
      ->capture_default_str();
  add_eval_options(*command, request);
  command->callback([flags, &invocation] {
    flags->request.delete_job_data =
        dialects::parse_swamp_bool("--delete-job-data", flags->delete_job_data);
    invocation.exit_status = evaluate_swamp_jobs(flags->request);
  });
}

void add_plot_commands(CLI::App& parent, Invocation& invocation) {
  struct Flags {
    std::string root = "jobs";
    std::string loss_file = dialects::kSwampLossFile;
    std::string out = "metrics.pdf";
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* plot = parent.add_subcommand("plot", "Draw each job's curves into its folder");
  plot->add_option("--job-root-dir", flags->root, "where the jobs' folders are")
      ->capture_default_str();
  plot->add_option("--loss-file", flags->loss_file,
                   "the picture's name; {} twice: trainers and pull probability")
      ->capture_default_str();
  plot->callback([flags, &invocation] {
    invocation.exit_status = plot_swamp_jobs(flags->root, flags->loss_file);
  });
  CLI::App* pdf = parent.add_subcommand("pdf", "Merge the curves of all jobs into one PDF file");
  pdf->add_option("--job-root-dir", flags->root, "where the jobs' folders are")
      ->capture_default_str()
      ->group(kOwnFlags);
  pdf->add_option("-o,--out", flags->out, "the file")->capture_default_str()->group(kOwnFlags);
  pdf->callback(
      [flags, &invocation] { invocation.exit_status = merge_swamp_jobs(flags->root, flags->out); });
}

void add_batch_command(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = parent.add_subcommand(
      "batch", "Train a grid of jobs, evaluate and plot them, and merge all into PDF files");
  struct Flags {
    TrainFlags train;
    SwampGrid grid;
    SwampEvalRequest evaluation;
    std::string delete_job_data = "false";
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("-t,--trainer-number", flags->grid.trainers, "numbers of trainers")
      ->capture_default_str();
  command->add_option("-p,--pull-probability", flags->grid.probabilities, "pull probabilities")
      ->capture_default_str();
  command
      ->add_option("--swamp-server", flags->grid.servers,
                   "fifo, latest, validated: one or more [validated]")
      ->check(CLI::IsMember({"fifo", "latest", "validated"}))
      ->group(kOwnFlags);
  command->add_option("--seed", flags->grid.seeds, "one or more [1]");
  command
      ->add_option("--delete-job-data", flags->delete_job_data,
                   "true: delete dumped models once they are evaluated")
      ->capture_default_str();
  flags->train.add_common(*command);
  add_eval_options(*command, flags->evaluation);
  flags->train.name_flags_of(*command);
  command->callback([flags, &invocation] {
    flags->train.complete();
    flags->evaluation.job_root_dir = flags->train.request.job_root_dir;
    flags->evaluation.delete_job_data =
        dialects::parse_swamp_bool("--delete-job-data", flags->delete_job_data);
    invocation.exit_status =
        run_swamp_grid(flags->grid, flags->train.request, flags->evaluation, invocation.arguments);
  });
}

}  // namespace

void add_swamp(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "swamp", "The Swamp experiment: trainers that compete, with its five commands");
  command->footer(kSwampExample);
  command->require_subcommand(1);
  add_train_command(*command, invocation);
  add_eval_command(*command, invocation);
  add_plot_commands(*command, invocation);
  add_batch_command(*command, invocation);
}

}  // namespace cohort::apps
