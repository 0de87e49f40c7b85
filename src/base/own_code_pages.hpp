// The pages of Rove's own code: brought in at the start, because a page fault each is most of what a first call would take.
#pragma once

namespace rove {

// Maps all pages of the library or program that holds this function, where the kernel can (since 5.14). Once for the process; some
// 100 us.
void touch_own_code_pages();

}  // namespace rove
