#pragma once
// Tells the service manager that started this process (systemd's Type=notify) when it is ready,
// what it waits for, and that it stops: one datagram each to the socket that NOTIFY_SOCKET names,
// which is taken out of the environment so that children do not speak for us. Without one, nothing.
// Thread: owner.

#include <optional>
#include <string>
#include <vector>

namespace moetier {

// What is to be told of a state of readiness after what was told before; pure.
class readiness_words final {
 public:
  // "READY=1\nSTATUS=serving" the first time it is ready, else a STATUS when the words change.
  std::optional<std::string> next(bool ready, const std::vector<std::string>& reasons);

 private:
  bool told_ready_ = false;
  std::string status_;
};

class service_notice final {
 public:
  service_notice();
  ~service_notice();
  service_notice(const service_notice&) = delete;
  service_notice& operator=(const service_notice&) = delete;

  bool wanted() const noexcept { return socket_ >= 0; }
  // Tells changes only; a manager that does not read loses words, never us time.
  void readiness(bool ready, const std::vector<std::string>& reasons);
  void stopping();

 private:
  void send(const std::string& words);

  int socket_ = -1;  // connected to the manager's
  readiness_words words_;
};

}  // namespace moetier
