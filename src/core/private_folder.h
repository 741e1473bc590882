// A folder of this user and process alone, that goes with this object and all that is in it.
//
// A killed process leaves its folder, perhaps with keys in it: whoever makes the next one of that
// kind removes it. A lock on the folder tells those that are in use.
#pragma once

#include <filesystem>
#include <string>

namespace cohort {

class PrivateFolder {
 public:
  // `parent`/`stem`-XXXXXX. Throws FileError.
  PrivateFolder(const std::filesystem::path& parent, const std::string& stem);
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  // the folder's descriptor
};

}  // namespace cohort
