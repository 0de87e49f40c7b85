// The messages of a control connection as structs, and as bytes (docs/meeting.md). Each message is 4 bytes of length, one byte for its kind,
// and fields in a fixed order.
//
// Invariants: a decoded message has all fields within their bounds. Decoding allocates at most the kBytesMax of its kind, does not recurse, and
// throws nothing but std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::wire::control {

inline constexpr std::uint16_t kVersion = 7;
inline constexpr std::size_t kLengthBytes = 4;

// Bounds of the fields.
inline constexpr std::size_t kAddressBytesMax =
    128;  // "unix:" and a socket's path of 107 bytes; "[v6]:port" is shorter
inline constexpr std::size_t kTripleBytesMax = 32;
inline constexpr std::size_t kOfferBytesMax = 16 * 1024;  // UCX: two worker addresses (~1 KiB each) and two keys
inline constexpr std::size_t kGoodbyeTextMax = 240;
inline constexpr std::size_t kResidentMax = 1024;  // packages that a node reports to have
inline constexpr std::size_t kMembersMax = 1024;   // of a cluster, and so in one list

using Nonce = OpaqueId<32, struct NonceTag>;
using Proof = OpaqueId<32, struct ProofTag>;
using Ticket = OpaqueId<16, struct TicketTag>;          // presented by the process that opens a stream lane
using LaneSecret = OpaqueId<16, struct LaneSecretTag>;  // never presented: the lane's keys are derived from it
using PublicKey = OpaqueId<32, struct PublicKeyTag>;    // Ed25519
using KeySeed = OpaqueId<32, struct KeySeedTag>;        // the secret from which a key pair is made
using Signature = OpaqueId<64, struct SignatureTag>;

enum class Kind : std::uint8_t {
    hello = 1,
    lane = 2,
    challenge = 3,
    proof = 4,
    request = 5,
    welcome = 6,
    redirect = 7,
    connected = 8,
    settled = 9,
    members = 10,
    goodbye = 11
};

enum class Role : std::uint8_t { client = 0, join = 1, member = 2 };
enum class ConnectedBy : std::uint8_t { offers = 0, ticket = 1 };

// The first message of a control connection, from the process that opened it.
struct Hello {
    static constexpr Kind kKind = Kind::hello;
    static constexpr std::string_view kName = "hello";
    static constexpr std::size_t kBytesMax = 1 + 4 + 2 + 1 + 32;
    Role role = Role::client;
    Nonce nonce;
    friend bool operator==(const Hello&, const Hello&) = default;
};

// The first and last message of a connection that becomes a stream lane.
struct LaneHello {
    static constexpr Kind kKind = Kind::lane;
    static constexpr std::string_view kName = "lane";
    static constexpr std::size_t kBytesMax = 1 + 4 + 2 + 16;
    Ticket ticket;
    friend bool operator==(const LaneHello&, const LaneHello&) = default;
};

struct Challenge {
    static constexpr Kind kKind = Kind::challenge;
    static constexpr std::string_view kName = "challenge";
    static constexpr std::size_t kBytesMax = 1 + 4 + 2 + 32 + 32;
    Nonce nonce;
    Proof proof;
    friend bool operator==(const Challenge&, const Challenge&) = default;
};

// Sent together with the request; read and checked before any byte of the request.
struct ProofGiven {
    static constexpr Kind kKind = Kind::proof;
    static constexpr std::string_view kName = "proof";
    static constexpr std::size_t kBytesMax = 1 + 32;
    Proof proof;
    friend bool operator==(const ProofGiven&, const ProofGiven&) = default;
};

// Proves an id: signed with the cluster's key, which its members have.
struct Certificate {
    NodeId id = 0;
    std::uint32_t generation = 0;  // counts the processes that had the id
    Signature signature;           // covers statement()
    friend bool operator==(const Certificate&, const Certificate&) = default;
};
inline constexpr std::size_t kCertificateBytes = 2 * 4 + 64;

struct Request {
    static constexpr Kind kKind = Kind::request;
    static constexpr std::string_view kName = "request";
    static constexpr std::size_t kBytesMax = 1 + 1 + 4 + (2 + kTripleBytesMax) + (2 + kAddressBytesMax) + 32 + 64 +
                                             kCertificateBytes + 32 + (2 + kOfferBytesMax);
    bool has_residents = false;
    bool replace = false;  // the sender has no link: the node drops the one that it has
    std::uint32_t features = 0;
    std::string triple;
    std::string address;  // the address on which it listens; empty for a client
    PublicKey key;        // a client's is zero, and so are the next three fields
    Signature signature;
    Certificate certificate;  // a member's; zero before it has joined
    PublicKey whom;           // the key of the member that it wants to meet; zero: any process at that address
    ByteBuffer offer;         // empty: no direct lane
    friend bool operator==(const Request&, const Request&) = default;
};

struct Welcome {
    static constexpr Kind kKind = Kind::welcome;
    static constexpr std::string_view kName = "welcome";
    static constexpr std::size_t kBytesMax =
        1 + 1 + 4 * 4 + 32 + 64 + 16 + 16 + (2 + kTripleBytesMax) + (2 + kResidentMax * 32) + (2 + kOfferBytesMax);
    bool has_residents = false;
    bool has_ticket = false;  // the opener may open a stream
    std::uint32_t features = 0;
    NodeId id = 0;   // the node's id
    NodeId you = 0;  // the opener's id
    std::uint32_t count = 1;
    PublicKey key;
    Signature signature;
    Ticket ticket;
    LaneSecret secret;
    std::string triple;
    std::vector<Digest> resident;
    ByteBuffer offer;  // empty: no direct lane
    friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Redirect {
    static constexpr Kind kKind = Kind::redirect;
    static constexpr std::string_view kName = "redirect";
    static constexpr std::size_t kBytesMax = 1 + 2 + kAddressBytesMax;
    std::string address;
    friend bool operator==(const Redirect&, const Redirect&) = default;
};

// Sent by the opener: which of the two it has connected by, the offers that both made or the ticket for a stream.
struct Connected {
    static constexpr Kind kKind = Kind::connected;
    static constexpr std::string_view kName = "connected";
    static constexpr std::size_t kBytesMax = 2;
    ConnectedBy by = ConnectedBy::offers;
    friend bool operator==(const Connected&, const Connected&) = default;
};

// A process that has an id, as its certificate states it.
struct Member {
    NodeId id = 0;
    std::uint32_t generation = 0;
    std::string address;
    PublicKey key;
    Signature signature;  // the certificate's
    friend bool operator==(const Member&, const Member&) = default;
};
// The member that the request claims to be from.
[[nodiscard]] Member member_of(const Request& request);
inline constexpr std::size_t kMemberBytesMax = kCertificateBytes + (2 + kAddressBytesMax) + 32;

// Sent by the node: the lane is open. A process that joins gets its certificate, the cluster's key and the list of members; for others all
// are zero.
struct Settled {
    static constexpr Kind kKind = Kind::settled;
    static constexpr std::string_view kName = "settled";
    static constexpr std::size_t kBytesMax = 1 + kCertificateBytes + 32 + 2 + kMembersMax * kMemberBytesMax;
    Certificate certificate;
    KeySeed cluster;
    std::vector<Member> members;
    friend bool operator==(const Settled&, const Settled&) = default;
};

// Sent between members, at any time after they met: members that the other may not know.
struct Members {
    static constexpr Kind kKind = Kind::members;
    static constexpr std::string_view kName = "members";
    static constexpr std::size_t kMost = 64;
    static constexpr std::size_t kBytesMax = 1 + 2 + kMost * kMemberBytesMax;
    std::vector<Member> members;
    friend bool operator==(const Members&, const Members&) = default;
};

// The last message of a connection, sent at any time.
struct Goodbye {
    static constexpr Kind kKind = Kind::goodbye;
    static constexpr std::string_view kName = "goodbye";
    static constexpr std::size_t kBytesMax = 1 + 1 + 1 + 2 + kGoodbyeTextMax;
    enum class Reason : std::uint8_t {
        left = 0,        // the process ends normally
        cut = 1,         // the sender ends the link; the text says why
        refused = 2,     // no meeting, for the reason given
        linked = 3,      // no meeting: the two members have a link, or are about to
        not_joined = 4,  // no meeting: this process is not a member yet
        another = 5,     // no meeting: this is another process than the one that the opener wants to meet
    };
    Reason reason = Reason::left;
    ErrorCode code = ErrorCode::ok;
    std::string text;  // longer ones are truncated; anything but printable ASCII is read as '?'
    friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// The whole message, its length included. Precondition: the fields keep their bounds.
[[nodiscard]] ByteBuffer encode(const Hello& message);
[[nodiscard]] ByteBuffer encode(const LaneHello& message);
[[nodiscard]] ByteBuffer encode(const Challenge& message);
[[nodiscard]] ByteBuffer encode(const ProofGiven& message);
[[nodiscard]] ByteBuffer encode(const Request& message);
[[nodiscard]] ByteBuffer encode(const Welcome& message);
[[nodiscard]] ByteBuffer encode(const Redirect& message);
[[nodiscard]] ByteBuffer encode(const Connected& message);
[[nodiscard]] ByteBuffer encode(const Settled& message);
[[nodiscard]] ByteBuffer encode(const Members& message);
[[nodiscard]] ByteBuffer encode(const Goodbye& message);

// Reads the bytes after the length. invalid: another kind, too short, too long, or a field is out of its bounds;
// unsupported: another version.
template <typename ControlMessage>
[[nodiscard]] Result<ControlMessage> decode(Bytes body);

// The name of a message's kind; nothing for an unknown kind.
[[nodiscard]] std::optional<Kind> kind_of(Bytes body);

// The bytes that a certificate's signature covers. `member.signature` is not among them.
[[nodiscard]] ByteBuffer statement(const Member& member);
// The bytes that the signature covers which proves a key. It is valid for one meeting at one address: it covers `bound`, the address on
// which the node listens, so that it cannot be used at another node.
[[nodiscard]] ByteBuffer statement(std::string_view side, const Nonce& node, const Nonce& peer, std::string_view bound);

}  // namespace rove::wire::control
