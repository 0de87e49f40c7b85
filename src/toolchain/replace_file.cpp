#include "toolchain/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/descriptor.hpp"
#include "toolchain/process.hpp"

namespace rove::toolchain {
namespace {

// A temporary folder beside a file. The destructor removes it. Others may be able to write to the file's folder, and could replace this
// folder by another one or a link. So it is used by its descriptor alone.
class FolderBeside {
public:
    explicit FolderBeside(const std::filesystem::path& file) : path_(file.string() + ".packed.XXXXXX") {
        if (mkdtemp(path_.data()) == nullptr) {
            path_.clear();
            return;
        }
        folder_ = Descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        struct stat made{};
        if (fstat(folder_.number(), &made) != 0 || made.st_uid != geteuid()) folder_ = {};
    }
    FolderBeside(const FolderBeside&) = delete;
    ~FolderBeside() {
        if (path_.empty()) return;
        (void)unlinkat(folder_.number(), kFile, 0);
        (void)rmdir(path_.c_str());
    }
    [[nodiscard]] bool is_there() const { return folder_.number() >= 0; }
    // The path of the file in it, for programs that this one runs.
    [[nodiscard]] std::string path_of_file() const {
        return fmt::format("/proc/{}/fd/{}/{}", getpid(), folder_.number(), kFile);
    }
    [[nodiscard]] Descriptor open_file() const {
        return Descriptor(openat(folder_.number(), kFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    }
    // False: see errno.
    [[nodiscard]] bool move_file_to(const std::filesystem::path& place) const {
        return renameat(folder_.number(), kFile, AT_FDCWD, place.c_str()) == 0;
    }

private:
    static constexpr const char* kFile = "program";
    std::string path_;  // empty: it was not made
    Descriptor folder_;
};

}  // namespace

Status replace_by(std::vector<std::string> command, const std::filesystem::path& program) {
    std::error_code unknown;
    const std::filesystem::path place = std::filesystem::canonical(program, unknown);
    if (unknown) return fail(ErrorCode::failed, "{} cannot be written: {}", program.string(), unknown.message());
    const auto not_added = [&program](const std::string& why) {
        return fail(ErrorCode::failed, "the packages could not be added to {}: {}", program.string(), why);
    };
    const FolderBeside beside(place);
    if (!beside.is_there()) return not_added(strerror(errno));
    command.insert(command.end(), {place.string(), beside.path_of_file()});
    struct stat before{};
    const bool is_known = stat(place.c_str(), &before) == 0;
    ROVE_TRY(const Ran ran, run(command, "binutils"));
    ROVE_CHECK(not_interrupted());
    if (ran.status != 0) return not_added("objcopy: " + ran.out);
    if (const Descriptor written = beside.open_file(); is_known) {  // objcopy writes a new file with default rights
        const bool has_owner = fchown(written.number(), before.st_uid, before.st_gid) == 0;
        (void)fchmod(written.number(),
                     before.st_mode & (has_owner ? 07777U : 0777U));  // set-user-ID only if the file keeps its owner
    }
    if (!beside.move_file_to(place)) return not_added(strerror(errno));
    return {};
}

}  // namespace rove::toolchain
