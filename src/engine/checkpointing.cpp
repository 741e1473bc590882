#include "engine/checkpointing.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace cohort::engine {
namespace {

storage::DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return storage::DType::kF64;
    case at::kFloat:
      return storage::DType::kF32;
    case at::kHalf:
      return storage::DType::kF16;
    case at::kBFloat16:
      return storage::DType::kBF16;
    case at::kLong:
      return storage::DType::kI64;
    case at::kInt:
      return storage::DType::kI32;
    case at::kByte:
      return storage::DType::kU8;
    case at::kBool:
      return storage::DType::kBool;
    default:
      break;
  }
  COHORT_CHECK(false, "a tensor of a type that checkpoints do not know");
}

at::ScalarType type_of(storage::DType dtype) {
  switch (dtype) {
    case storage::DType::kF64:
      return at::kDouble;
    case storage::DType::kF32:
      return at::kFloat;
    case storage::DType::kF16:
      return at::kHalf;
    case storage::DType::kBF16:
      return at::kBFloat16;
    case storage::DType::kI64:
      return at::kLong;
    case storage::DType::kI32:
      return at::kInt;
    case storage::DType::kI16:
      return at::kShort;
    case storage::DType::kI8:
      return at::kChar;
    case storage::DType::kU8:
      return at::kByte;
    case storage::DType::kBool:
      return at::kBool;
  }
  COHORT_CHECK(false, "a type of safetensors");
}

// Whether values of one type mean the same as values of the other. Whole numbers are no weights:
// those of a quantised model need a scale as well. Counts are whole, also where somebody made all
// halves.
bool is_convertible(storage::DType from, const at::Tensor& to) {
  const at::ScalarType type = type_of(from);
  if (type == to.scalar_type() || at::isFloatingType(type)) return true;
  return type != at::kBool && !at::isFloatingType(to.scalar_type());
}

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

std::string type_text(storage::DType dtype, at::IntArrayRef shape) {
  return std::string(storage::dtype_name(dtype)) + shape_text(shape);
}

bool fits(const storage::TensorView& found, const at::Tensor& value, bool convert) {
  return at::IntArrayRef(found.shape) == value.sizes() &&
         (found.dtype == dtype_of(value) || (convert && is_convertible(found.dtype, value)));
}

// Among the tensors of the state.
constexpr const char* kCarried = "carried";

storage::TensorView view_of(const std::string& name, const at::Tensor& tensor) {
  return {name,
          dtype_of(tensor),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}};
}

class Saver final : public methods::StateVisitor {
 public:
  Saver(std::vector<storage::TensorView>& views, std::vector<at::Tensor>& kept,
        nlohmann::json& numbers)
      : views_(views), kept_(kept), numbers_(numbers) {}

  void tensor(const std::string& name, const at::Tensor& value) override {
    // Row-major in main memory, as the file wants it: a copy only where that is not so already.
    kept_.push_back(value.detach().cpu().contiguous());
    views_.push_back(view_of(name, kept_.back()));
  }
  void number(const std::string& name, std::int64_t& value) override { numbers_[name] = value; }

 private:
  std::vector<storage::TensorView>& views_;
  std::vector<at::Tensor>& kept_;
  nlohmann::json& numbers_;
};

class Loading final : public methods::StateVisitor {
 public:
  Loading(const storage::SafetensorsFile& file, std::string source, const nlohmann::json& numbers,
          bool convert = false)
      : file_(file), source_(std::move(source)), numbers_(numbers), convert_(convert) {}

  void tensor(const std::string& name, const at::Tensor& value) override {
    const storage::TensorView* found = file_.find(name);
    if (found == nullptr) throw FileError(source_ + " has no tensor '" + name + "'");
    if (!fits(*found, value, convert_)) {
      throw FileError(source_ + ": tensor '" + name + "' is " +
                      type_text(found->dtype, found->shape) + ", the model needs " +
                      type_text(dtype_of(value), value.sizes()));
    }
    const c10::NoGradGuard no_grad;
    at::Tensor copy = at::empty(value.sizes(), at::TensorOptions().dtype(type_of(found->dtype)));
    if (!found->bytes.empty()) {
      std::memcpy(copy.data_ptr(), found->bytes.data(), found->bytes.size());
    }
    at::Tensor target = value.detach();
    target.copy_(copy);
    used_.insert(name);
  }

  void number(const std::string& name, std::int64_t& value) override {
    const auto found = numbers_.find(name);
    if (found == numbers_.end() || !found->is_number_integer()) {
      throw FileError(source_ + " has no number '" + name + "'");
    }
    value = found->get<std::int64_t>();
  }

  void expect_nothing_else() const {
    for (const storage::TensorView& tensor : file_.tensors()) {
      if (used_.count(tensor.name) == 0 && tensor.name != kCarried) {
        throw FileError(source_ + " has a tensor '" + tensor.name + "' that the model has not");
      }
    }
  }

 private:
  const storage::SafetensorsFile& file_;
  std::string source_;
  const nlohmann::json& numbers_;
  bool convert_;
  std::set<std::string> used_;
};

// The first few, each on a line of its own.
std::string first_of(const std::vector<std::string>& lines) {
  constexpr std::size_t kMax = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, lines.size()); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMax) {
    text += "\n  and " + std::to_string(lines.size() - kMax) + " more like these";
  }
  return text;
}

}  // namespace

Snapshot::Snapshot(methods::Replica& replica, methods::UpdateMethod& method, Step step,
                   nlohmann::json extra) {
  nlohmann::json numbers = nlohmann::json::object();
  contents_.step = step;
  Saver model(contents_.model, kept_, numbers);
  replica.visit_model(model);
  Saver state(contents_.state, kept_, numbers);
  replica.visit_state(state);
  method.visit_state(state);
  contents_.extra = {{"engine", std::move(extra)}, {"numbers", std::move(numbers)}};
}

Snapshot::Snapshot(methods::Replica& replica, const std::vector<WorkerState>& workers, Step step,
                   nlohmann::json extra) {
  nlohmann::json numbers = nlohmann::json::object();
  contents_.step = step;
  Saver model(contents_.model, kept_, numbers);
  replica.visit_model(model);
  contents_.state = state_tensors(workers);
  contents_.extra = {{"engine", std::move(extra)}, {"numbers", std::move(numbers)}};
}

Snapshot::~Snapshot() = default;

void Snapshot::add_carried(const at::Tensor& of_all) {
  if (!of_all.defined()) return;
  kept_.push_back(of_all.detach().cpu().contiguous());
  contents_.state.push_back(view_of(kCarried, kept_.back()));
}

at::Tensor carried_of(const storage::LoadedCheckpoint& checkpoint) {
  const storage::TensorView* found = checkpoint.state.find(kCarried);
  if (found == nullptr) return {};
  if (found->dtype != storage::DType::kF32) {
    throw FileError((checkpoint.folder / "state.safetensors").string() + ": tensor '" + kCarried +
                    "' is not of the type F32");
  }
  at::Tensor carried = at::empty(found->shape, at::TensorOptions().dtype(at::kFloat));
  if (!found->bytes.empty()) {
    std::memcpy(carried.data_ptr(), found->bytes.data(), found->bytes.size());
  }
  return carried;
}

storage::DumpContent copy_model(methods::Replica& replica) {
  class Copier final : public methods::StateVisitor {
   public:
    void tensor(const std::string& name, const at::Tensor& value) override {
      at::Tensor copy = value.detach().cpu().contiguous();
      if (copy.is_alias_of(value)) copy = copy.clone();
      kept->push_back(std::move(copy));
      content.tensors.push_back(view_of(name, kept->back()));
    }
    void number(const std::string&, std::int64_t&) override {}

    std::shared_ptr<std::vector<at::Tensor>> kept = std::make_shared<std::vector<at::Tensor>>();
    storage::DumpContent content;
  };
  Copier copier;
  replica.visit_model(copier);
  copier.content.memory = copier.kept;
  return std::move(copier.content);
}

void restore(const storage::LoadedCheckpoint& checkpoint, methods::Replica& replica,
             methods::UpdateMethod& method) {
  const nlohmann::json numbers = checkpoint.extra.value("numbers", nlohmann::json::object());
  restore_model(checkpoint.model, (checkpoint.folder / "model.safetensors").string(), replica);
  Loading state(checkpoint.state, (checkpoint.folder / "state.safetensors").string(), numbers);
  replica.visit_state(state);
  method.visit_state(state);
  state.expect_nothing_else();
}

void restore_model(const storage::SafetensorsFile& file, const std::string& source,
                   methods::Replica& replica) {
  const nlohmann::json none = nlohmann::json::object();
  Loading loading(file, source, none, /*convert=*/true);
  replica.visit_model(loading);
  replica.refresh_copies();
  loading.expect_nothing_else();
}

void restore_model(const storage::SafetensorsFile& file, const std::string& source,
                   models::Model& model) {
  const nlohmann::json none = nlohmann::json::object();
  Loading loading(file, source, none, /*convert=*/true);
  for (models::Parameter& parameter : model.store().parameters()) {
    loading.tensor(parameter.name, parameter.value);
  }
  for (models::Buffer& buffer : model.store().buffers()) loading.tensor(buffer.name, buffer.value);
  loading.expect_nothing_else();
}

namespace {

// How much of a model's parameters a file has.
class Fit {
 public:
  explicit Fit(const std::deque<models::Parameter>& parameters) : tensors_(parameters.size()) {
    if (!parameters.empty()) last_layer_ = layer_of(parameters.back());
    for (const models::Parameter& parameter : parameters) numbers_ += weight_of(parameter);
  }

  void take(const models::Parameter& parameter) {
    ++taken_;
    taken_numbers_ += weight_of(parameter);
  }

  bool is_little() const { return 2 * taken_ < tensors_ || 2 * taken_numbers_ < numbers_; }

  std::string text() const {
    return std::to_string(taken_) + " of the " + std::to_string(tensors_) + " parameters, and " +
           with_commas(taken_numbers_) + " of " + with_commas(numbers_) +
           " numbers before the last layer,";
  }

 private:
  static std::string layer_of(const models::Parameter& parameter) {
    return parameter.name.substr(0, parameter.name.rfind('.'));
  }

  // Tensors of normalisation and bias are many, and hold little. The last layer is often one for
  // other classes.
  std::int64_t weight_of(const models::Parameter& parameter) const {
    return layer_of(parameter) == last_layer_ ? 0 : parameter.value.numel();
  }

  std::size_t tensors_;
  std::size_t taken_ = 0;
  std::int64_t numbers_ = 0;
  std::int64_t taken_numbers_ = 0;
  std::string last_layer_;
};

}  // namespace

std::vector<std::string> initialize_from(const std::filesystem::path& path, models::Model& model) {
  const storage::SafetensorsFile file = storage::SafetensorsFile::open(path);
  const nlohmann::json none = nlohmann::json::object();
  Loading loading(file, path.string(), none, /*convert=*/true);
  std::vector<std::string> lines;
  std::set<std::string> wanted;
  // Whether the file has it.
  const auto offer = [&](const std::string& name, const at::Tensor& value) {
    wanted.insert(name);
    const storage::TensorView* found = file.find(name);
    if (found == nullptr) {
      lines.push_back("not in " + path.string() + ", stays as initialised: " + name);
      return false;
    }
    if (!fits(*found, value, /*convert=*/true)) {
      lines.push_back("does not fit in " + path.string() + ", stays as initialised: " + name +
                      " is " + type_text(found->dtype, found->shape) + " instead of " +
                      type_text(dtype_of(value), value.sizes()));
      return false;
    }
    loading.tensor(name, value);
    if (value.is_floating_point() && !at::isfinite(value).all().item<bool>()) {
      throw FileError(path.string() + ": " + name +
                      " has values that are not numbers or are infinite, and nothing can be "
                      "learned from there: the training that made it has diverged; take an "
                      "earlier checkpoint of it, or leave --init out");
    }
    return true;
  };
  Fit fit(model.store().parameters());
  for (models::Parameter& parameter : model.store().parameters()) {
    if (offer(parameter.name, parameter.value)) fit.take(parameter);
  }
  for (models::Buffer& buffer : model.store().buffers()) offer(buffer.name, buffer.value);
  for (const storage::TensorView& tensor : file.tensors()) {
    if (wanted.count(tensor.name) == 0) {
      lines.push_back("the model has no tensor '" + tensor.name + "' of " + path.string());
    }
  }
  if (fit.is_little()) {
    throw FileError(path.string() + " has only " + fit.text() +
                    " of this model: is it for another one?" + first_of(lines));
  }
  return lines;
}

}  // namespace cohort::engine
