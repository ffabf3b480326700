#pragma once
// A progress bar on a terminal: one line, redrawn in place, ended when the work is. Where the
// stream is no terminal it writes nothing at all, so logs stay clean. Owned by the shell that
// loads; it decides nothing.
// Thread: owner.

#include <cstdint>
#include <string>
#include <string_view>

namespace moetier::workers {

// "weights [#####.....]  50 %  128 of 256 experts"
std::string progress_line(std::string_view label, std::uint32_t done, std::uint32_t total);

class progress_bar final {
 public:
  // `descriptor`: usually STDERR_FILENO.
  progress_bar(std::string label, int descriptor);
  ~progress_bar();  // ends the line that was begun
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  // Draws when what is shown has changed. Requires: done <= total.
  void update(std::uint32_t done, std::uint32_t total);

 private:
  void put(std::string_view text) noexcept;

  std::string label_;
  int descriptor_;
  bool terminal_;
  std::string drawn_;  // the line on the screen
};

}  // namespace moetier::workers
