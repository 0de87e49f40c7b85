// What the node's program shares, and the functions that are sent there use: both include this file.
#pragma once

#include <map>
#include <mutex>
#include <string>

struct Counts {
    std::mutex mutex;
    std::map<std::string, int> of;  // guarded by mutex
};
