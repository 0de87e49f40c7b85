// The functions of the static libraries of api_linked.
#pragma once

namespace rove {
class Peer;
}

namespace linked {

int embedded(int x);
int left(int x);
int sends_its_own(const rove::Peer& peer);  // a function of the library

}  // namespace linked
