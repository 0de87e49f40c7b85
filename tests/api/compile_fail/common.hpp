// For programs that must not compile: each says what its message has to say.
#pragma once

#include "rove/rove.hpp"

const rove::Peer& some_peer();
