// Numbered work as plain C++ functions, in a header that programs with several values of LIFE_BUILD include: functions of one name
// whose code differs. This is what the node program has built in as well; the others are in travelling.hpp.
#pragma once

#include "rove/rove.hpp"
#include "work.h"

namespace life {

using Head = life_head;
using Answer = life_answer;

inline Answer run_here(const rove::Here& here, const Head& head, std::string_view body) {
    if (!life_record(head.number, head.step, here.node(), LIFE_BUILD))
        throw rove::Error(rove::ErrorCode::failed, "life: the run was not recorded");
    if (head.nap_us != 0) usleep(head.nap_us);
    if (head.on_purpose != 0) throw rove::Error(rove::ErrorCode::failed, "life: on purpose");
    return {head.number, life_sum(body.data(), body.size()), LIFE_BUILD, here.node(), head.step, 0};
}

inline Answer resident_work(rove::Here& here, const Head& head, const std::string& body) {
    return run_here(here, head, body);
}

}  // namespace life
