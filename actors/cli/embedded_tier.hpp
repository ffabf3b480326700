#pragma once
// A tier of a bench's own: `moetier up` as a child process with the bench's model and settings,
// ready when start() returns, ended by the destructor. Thread: owner, and the thread that starts it
// must outlive it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/cli/command_line.hpp"
#include "actors/up/child_process.hpp"
#include "schemas/base/error.hpp"

namespace moetier::cli {

// What `moetier up` is called with for a bench's command line.
std::vector<std::string> up_arguments(const command_line& line, std::uint32_t workers);

class embedded_tier final {
 public:
  // reason::config_invalid without a model; what the child says of its end is on standard error.
  static expected<std::unique_ptr<embedded_tier>> start(const command_line& line,
                                                        const std::string& model,
                                                        std::uint32_t workers);
  ~embedded_tier();  // asks it to end and waits for that, a few seconds at most
  embedded_tier(const embedded_tier&) = delete;
  embedded_tier& operator=(const embedded_tier&) = delete;

  const std::string& address() const noexcept { return address_; }               // for clients
  const std::vector<std::string>& workers() const noexcept { return workers_; }  // their HTTP

 private:
  explicit embedded_tier(std::unique_ptr<up::child_process> child) : child_(std::move(child)) {}
  expected<void> wait_ready(duration_ns limit);

  std::unique_ptr<up::child_process> child_;
  std::string address_;
  std::vector<std::string> workers_;
};

}  // namespace moetier::cli
