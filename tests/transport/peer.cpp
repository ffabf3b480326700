// A worker in a process of its own, for peer_process_test: it speaks over standard input and output
// in lines. First it prints its address; then it is told each source's identity and address; from
// then on it answers every arrival with the rows' own hidden bytes, or holds it and says so, until
// its input ends.
//
//   peer CARRIER echo|hold

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "tests/transport/peer_lines.hpp"

using namespace moetier;
using namespace moetier::transport;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool holds = std::string(argv[2]) == "hold";
  auto carrier = open_carrier(argv[1], {});
  if (!carrier) return 3;
  auto worker = (*carrier)->make_worker({.identity = k_peer_worker});
  if (!worker) return 4;
  std::cout << to_hex((*worker)->address()) << std::endl;

  std::string line;
  if (!std::getline(std::cin, line)) return 5;
  if (!(*worker)->attach_source(k_peer_source, k_peer_shape, from_hex(line))) return 6;
  std::cout << "attached" << std::endl;

  for (int held = 0;;) {
    arrival a;
    while ((*worker)->poll(std::span(&a, 1)) == 1) {
      if (holds) {
        std::cout << "held " << ++held << std::endl;
        continue;
      }
      const auto region = (*worker)->return_region(a.ticket);
      if (!a.hidden.empty()) std::memcpy(region.data(), a.hidden.data(), a.hidden.size());
      (*worker)->give_back(a.ticket, a.rows, status::ok, 0);
    }
    (*worker)->wait(std::chrono::microseconds(20), std::chrono::milliseconds(100));
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, 0) == 1 && (input.revents & POLLHUP) != 0) return 0;
  }
}
