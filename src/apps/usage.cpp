#include "apps/usage.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "config/other_words.h"
#include "core/error.h"
#include "core/text.h"

namespace cohort::apps {
namespace {

constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWithoutTerminal = 100;

struct CommandAdvice {
  std::string_view words;
  std::string_view text;
};

// Commands of other tools.
constexpr CommandAdvice kCommandAdvice[] = {
    {"fit run start finetune fine-tune learn", "to train: cohort train"},
    {"resume continue restart", "to go on with a run: cohort train --resume DIR"},
    {"sweep search grid gridsearch hyperopt hparams optimize",
     "there is no search for settings: call cohort train once for each, with its own --name, and "
     "compare them with cohort report runs/*"},
    {"test evaluate validate predict infer inference score val", "to evaluate: cohort eval RUN"},
    {"save convert", "to write a model for PyTorch: cohort export RUN"},
    {"chart draw curves tensorboard", "to draw curves: cohort plot RUN, or cohort report RUN"},
    {"compare summary show results", "to compare runs: cohort report RUN RUN"},
    {"ls models methods optimizers schedules topologies compressors engines",
     "for what there is: cohort list"},
    {"datasets dataset download prepare", "for the data sets and where they lie: cohort data"},
    {"benchmark profile speed perf", "to measure speed: cohort bench"},
    {"mpirun mpiexec torchrun horovodrun srun spawn distribute accelerate",
     "to start several processes: cohort launch -n 2 -- train"},
    {"serve server ps pserver parameter-server",
     "for a parameter server: cohort serve-parameters; cohort launch --servers starts all"},
    {"version", "for the version: cohort --version"},
};

std::string advice_on_command(const std::string& word) {
  for (const CommandAdvice& advice : kCommandAdvice) {
    const std::vector<std::string> words = split(advice.words, ' ');
    if (std::find(words.begin(), words.end(), lower(word)) != words.end()) {
      return std::string(advice.text);
    }
  }
  return "";
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back(name);
  }
  return flags;
}

// Of flags that have no longer name.
std::vector<std::string> letters_of(const CLI::App& app) {
  std::vector<std::string> letters;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) continue;
    for (const std::string& name : option->get_snames()) letters.push_back(name);
  }
  return letters;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  return commands;
}

std::string explain_flag(const std::string& written, const CLI::App& command) {
  const std::string flag = written.substr(0, written.find('='));
  const std::string unknown = "unknown flag " + flag;
  const std::string word = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::vector<std::string> known = flags_of(command);
  std::vector<std::string> all = letters_of(command);
  all.insert(all.begin(), known.begin(), known.end());
  std::string ours = config::same_meaning(word, all);
  if (ours.empty()) ours = config::nearest_meaning(word, all);
  if (!ours.empty()) return unknown + ": here it is " + (ours.size() == 1 ? "-" : "--") + ours;
  if (const std::string advice = config::advice_instead_of(word); !advice.empty()) {
    return unknown + ": " + advice;
  }
  const std::string guess = word.size() < 2 ? "" : nearest(word, known);
  return unknown + (guess.empty() ? "" : "; did you mean --" + guess + "?");
}

std::string explain_command(const std::string& word, const CLI::App& command) {
  const std::vector<std::string> known = commands_of(command);
  const std::string advice = command.get_parent() == nullptr ? advice_on_command(word) : "";
  if (advice.empty()) return unknown_name("command", word, known);
  return "unknown command '" + word + "'; " + advice;
}

std::size_t terminal_width() {
  std::size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    width = std::strtoul(columns, nullptr, 10);
  }
  // A pager reads the output, and the errors go to its terminal.
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size = {};
    if (width == 0 && ::ioctl(stream, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  }
  return width == 0 ? kWithoutTerminal : std::max(width, kNarrowest);
}

// Lines of up to `width`, broken between words; all but the first begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t begins_at, std::size_t indent,
                    std::size_t width) {
  std::string out;
  std::size_t column = begins_at;
  bool first = true;
  for (const std::string& word : split(text, ' ')) {
    if (!first && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  return out;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() : width_(terminal_width()) {
    column_width(std::min<std::size_t>(get_column_width(), width_ / 3));
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_display_name(true), command->get_description());
  }

  std::string make_description(const CLI::App* app) const override {
    return paragraphs(CLI::Formatter::make_description(app));
  }

  std::string make_footer(const CLI::App* app) const override {
    return paragraphs(CLI::Formatter::make_footer(app));
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                         "\n\n\n", "\n\n");
  }

 private:
  std::string entry(const std::string& name, const std::string& description) const {
    const std::size_t column = get_column_width();
    std::string line = wrapped("  " + name, 0, 4, width_);
    if (description.empty()) return line + "\n";
    const std::size_t used = line.size() - (line.rfind('\n') + 1);
    if (used + 1 <= column) {
      line.resize(line.size() + column - used, ' ');
    } else {
      line += "\n" + std::string(column, ' ');
    }
    return line + wrapped(description, column, column, width_) + "\n";
  }

  // A line that begins with spaces is an example, to be copied as it is.
  std::string paragraphs(const std::string& text) const {
    std::string out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      out += (line.starts_with(' ') ? line : wrapped(line, 0, 0, width_)) + "\n";
    }
    return out;
  }

  std::size_t width_;
};

const CLI::App& find_command(const CLI::App& program, const std::vector<std::string>& path) {
  const CLI::App* command = &program;
  for (const std::string& word : path) {
    const CLI::App* next = nullptr;
    for (const CLI::App* each : command->get_subcommands([](const CLI::App*) { return true; })) {
      if (each->get_name() == word) next = each;
    }
    if (next == nullptr) throw ConfigError(explain_command(word, *command));
    command = next;
  }
  return *command;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

void add_help(CLI::App& program) {
  CLI::App* command = program.add_subcommand("help", "The same as --help of a command");
  auto path = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *path, "which, e.g. train; without: all commands");
  command->callback([&program, path] {
    const CLI::App& asked = find_command(program, *path);
    const CLI::App* parent = asked.get_parent();
    const CLI::FormatterBase& formatter = *asked.get_formatter();
    std::fputs(
        formatter
            .make_help(&asked,
                       (parent == nullptr ? "" : full_name(*parent) + " ") + asked.get_name(),
                       CLI::AppFormatMode::Normal)
            .c_str(),
        stdout);
  });
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

const CLI::App& innermost(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? program : innermost(*chosen.front());
}

std::string in_own_flags(const std::string& message, const CLI::App& program) {
  static constexpr std::string_view kDialects[] = {"imagenet", "swamp", "mnist", "dist_train",
                                                   "choco"};
  const CLI::App* command =
      program.get_subcommands().empty() ? nullptr : program.get_subcommands().front();
  if (command == nullptr || std::find(std::begin(kDialects), std::end(kDialects),
                                      command->get_name()) == std::end(kDialects)) {
    return message;
  }
  const std::vector<std::string> own = flags_of(innermost(program));
  const std::vector<std::string> native = flags_of(*program.get_subcommand("train"));
  static const std::regex kFlag("--([a-z][a-z0-9_-]*)");
  std::string text;
  std::size_t done = 0;
  for (std::sregex_iterator flag(message.begin(), message.end(), kFlag), end; flag != end; ++flag) {
    const auto begin = static_cast<std::size_t>(flag->position());
    const std::string word = (*flag)[1];
    text += message.substr(done, begin - done);
    done = begin + flag->str().size();
    // Of a command that is written out.
    const std::size_t clause = text.find_last_of(";:,.(`\n");
    const bool quoted = text.find("cohort ", clause == text.npos ? 0 : clause) != text.npos;
    const std::string theirs = quoted ? word : config::same_meaning(word, own);
    text += "--" + (theirs.empty() ? word : theirs);
    const bool lacks = theirs.empty() && !config::same_meaning(word, native).empty();
    if (lacks) text += " (of cohort train)";
  }
  return text + message.substr(done);
}

std::string explain_usage(const CLI::ParseError& error, const CLI::App& program) {
  const CLI::App& command = innermost(program);
  for (const std::string& extra : program.remaining(true)) {
    if (extra == "--") continue;  // only says that no flags follow
    if (extra.size() > 1 && extra.front() == '-') return explain_flag(extra, command);
    if (!commands_of(command).empty()) return explain_command(extra, command);
  }
  return error.what();
}

}  // namespace cohort::apps
