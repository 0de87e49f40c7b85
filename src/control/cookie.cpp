#include "control/cookie.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace rove::control {
namespace {

std::filesystem::path home() {
    if (const char* value = std::getenv("HOME"); value != nullptr && *value != '\0') return value;
    if (const passwd* user = getpwuid(geteuid()); user != nullptr) return user->pw_dir;
    return "/";
}

// The path if the user chooses no other.
std::filesystem::path default_path() {
    if (const char* value = std::getenv("XDG_CONFIG_HOME"); value != nullptr && *value == '/')
        return std::filesystem::path(value) / "rove" / "cookie";
    return home() / ".config" / "rove" / "cookie";
}

// A lack of descriptors or of memory is temporary, so a later attempt may succeed: it says nothing about the cookie.
tl::unexpected<Error> fail_at(std::string_view doing, const std::filesystem::path& path, int error) {
    if (error == EMFILE || error == ENFILE)
        return fail(ErrorCode::overloaded, "cannot {} the cookie {} ({}); raise the limit (ulimit -n)", doing,
                    path.string(), strerror(error));
    if (error == ENOMEM)
        return fail(ErrorCode::overloaded,
                    "cannot {} the cookie {} ({}); try again later, or raise the limit (ulimit -v)", doing,
                    path.string(), strerror(error));
    return fail(ErrorCode::refused, "cannot {} the cookie {}: {}; name another place with --cookie FILE or ROVE_COOKIE",
                doing, path.string(), strerror(error));
}

// Writes the cookie under a temporary name and links it to the final one, so that no process reads half a cookie and the first of two
// processes wins.
Status make(const std::filesystem::path& path) {
    std::error_code ignored;
    // An existing folder may belong to others: /tmp, for example. A folder that was named and does not exist was misspelt.
    if (path == default_path() && std::filesystem::create_directories(path.parent_path(), ignored))
        (void)chmod(path.parent_path().c_str(), 0700);
    std::string temporary = path.string() + ".XXXXXX";
    const int file = mkostemp(temporary.data(), O_CLOEXEC);  // mode 0600
    if (file < 0) return fail_at("make", path, errno);
    Cookie cookie;
    randombytes_buf(cookie.data(), cookie.size());
    const bool written = write(file, cookie.data(), cookie.size()) == static_cast<ssize_t>(cookie.size());
    const bool linked = written && (link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
    const int error = errno;
    close(file);
    unlink(temporary.c_str());
    if (!linked) return fail_at("write", path, error);
    return {};
}

}  // namespace

std::filesystem::path cookie_path(const std::filesystem::path& chosen) {
    if (!chosen.empty()) return chosen;
    if (const char* value = std::getenv("ROVE_COOKIE"); value != nullptr && *value != '\0') return value;
    return default_path();
}

Result<Cookie> read_or_make_cookie(const std::filesystem::path& path) {
    // Opening a pipe would otherwise wait for a writer.
    constexpr int kHow = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int file = open(path.c_str(), kHow);
    if (file < 0 && errno == ENOENT) {
        ROVE_CHECK(make(path));
        file = open(path.c_str(), kHow);
    }
    if (file < 0) return fail_at("read", path, errno);
    struct stat facts{};
    Cookie cookie;
    const bool read_all =
        fstat(file, &facts) == 0 && read(file, cookie.data(), cookie.size()) == static_cast<ssize_t>(cookie.size());
    close(file);
    if (!S_ISREG(facts.st_mode))
        return fail(ErrorCode::refused,
                    "the cookie {} is no regular file; name another one with --cookie FILE or ROVE_COOKIE",
                    path.string());
    if (facts.st_uid != geteuid() || (facts.st_mode & 077) != 0)
        return fail(ErrorCode::refused,
                    "the cookie {} must belong to this user and be readable by no one else (chmod 600)", path.string());
    if (!read_all)
        return fail(ErrorCode::refused, "the cookie {} is not {} bytes long; delete it, and it is made again",
                    path.string(), kCookieBytes);
    return cookie;
}

Nonce random_nonce() {
    Nonce nonce;
    randombytes_buf(nonce.bytes.data(), nonce.bytes.size());
    return nonce;
}

Proof prove(const Cookie& cookie, std::string_view side, const Nonce& node, const Nonce& peer,
            std::string_view endpoint) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(cookie.data()), cookie.size(),
                            sizeof(Proof));
    const auto add = [&state](Bytes bytes) {
        const std::uint64_t size = bytes.size();  // lengths separate neighbouring fields
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&size), sizeof size);
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    };
    for (const std::string_view text : {std::string_view("rove meeting 1"), side, endpoint})
        add(std::as_bytes(std::span(text)));
    add(node.raw());
    add(peer.raw());
    Proof proof;
    crypto_generichash_final(&state, proof.bytes.data(), proof.bytes.size());
    return proof;
}

bool same(const Proof& a, const Proof& b) {
    return sodium_memcmp(a.bytes.data(), b.bytes.data(), sizeof(Proof)) == 0;
}

}  // namespace rove::control
