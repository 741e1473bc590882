// Folders as units that appear, change and disappear at once.
//
// Used by one process at a time for a given parent; readers may look on at any moment. All
// functions throw FileError unless they say otherwise.
#pragma once

#include <filesystem>
#include <string_view>

namespace cohort::storage {

inline constexpr std::string_view kSetAsidePrefix = ".old-";

// rename(2) with an error message.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

// Makes the names in `folder` durable; "" is the working folder.
void sync_folder(const std::filesystem::path& folder);

// Removes every entry of `folder` whose name begins with kTemporaryPrefix: what writers that were
// killed have left. Never throws; what cannot be removed stays until the next time.
void remove_leftovers(const std::filesystem::path& folder) noexcept;

// Puts the folder `from` in the place of `to`, which may exist and is then discarded. With
// RENAME_EXCHANGE there is no moment without a `to`; on file systems that cannot do that (some
// network ones) it is replace_folder_in_two_steps.
void replace_folder(const std::filesystem::path& from, const std::filesystem::path& to);

// Sets `to` aside under kSetAsidePrefix before `from` takes its place. Killed in between, the old
// folder is found by set_aside_name() and restored by restore_set_aside().
void replace_folder_in_two_steps(const std::filesystem::path& from,
                                 const std::filesystem::path& to);

std::filesystem::path set_aside_name(const std::filesystem::path& folder);

// Gives every folder set aside in `parent` its name back, or removes it if its replacement arrived.
void restore_set_aside(const std::filesystem::path& parent);

// Removes a file, or a folder with all that is in it, as far as it can be removed. Links are
// removed, not followed. (Not std::filesystem::remove_all: libtorch's wheels export a broken one,
// which the loader may prefer to libstdc++'s.)
void remove_tree(const std::filesystem::path& path);

// The folder vanishes from readers at once, then its files are deleted.
void discard_folder(const std::filesystem::path& folder);

}  // namespace cohort::storage
