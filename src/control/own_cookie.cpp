#include "control/own_cookie.hpp"

namespace rove::control {

Result<Cookie> OwnCookie::get() {
    if (cookie_) return *cookie_;
    ROVE_TRY(const Cookie read, read_or_make_cookie(path()));
    cookie_ = read;
    return read;
}

}  // namespace rove::control
