#include "lead/thread_runs.hpp"

namespace rove {

constinit thread_local ThreadRuns::Top ThreadRuns::top_;
constinit thread_local unsigned ThreadRuns::nested_ = 0;
constinit thread_local unsigned ThreadRuns::no_nesting_ = 0;

bool ThreadRuns::is_in(const Run& run) {
    const Run* each = top_.run;
    while (each != nullptr && each != &run) each = each->beneath;
    return each != nullptr;
}

}  // namespace rove
