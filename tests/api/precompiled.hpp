// Precompiled: what every file of the program begins with.
#pragma once

#include <cstdio>

#include "rove/rove.hpp"

int too(const rove::Peer& peer);
