// Prefetches the pages of Rove's own code at the start, because their page faults would be most of the time of a first call.
//
// Threads: any. The first one does it, the others wait.
#pragma once

namespace rove {

// Maps all pages of the library or program that contains this function, if the kernel can (since 5.14). Once per process; some
// 100 us.
void touch_own_code_pages();

}  // namespace rove
