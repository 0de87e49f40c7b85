#include "wire/control.hpp"

#include <algorithm>

namespace rove::wire::control {
namespace {

constexpr std::string_view kMagic = "ROVE";

bool printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

template <typename ControlMessage>
Writer begin() {
    Writer out;
    out.number(std::uint32_t{0});  // the length, written at the end
    out.number(static_cast<std::uint8_t>(ControlMessage::kKind));
    return out;
}

ByteBuffer end(Writer&& out) {
    ByteBuffer bytes = out.take();
    const auto size = static_cast<std::uint32_t>(bytes.size() - kLengthBytes);
    std::memcpy(bytes.data(), &size, sizeof size);
    return bytes;
}

void write_version(Writer& out) {
    out.bytes(as_bytes(kMagic));
    out.number(kVersion);
}

// A message of another version is recognised by its first bytes, whatever its other fields are.
Status read_version(Reader& in) {
    if (as_text(in.take(kMagic.size())) != kMagic || !in.ok())
        return fail(ErrorCode::invalid, "it does not speak Rove's protocol");
    const auto version = in.number<std::uint16_t>();
    if (!in.ok()) return fail(ErrorCode::invalid, "it does not speak Rove's protocol");
    if (version == kVersion) return {};
    return fail(ErrorCode::unsupported,
                "it speaks version {} of Rove's protocol, this is version {}; use one Rove on both sides", version,
                kVersion);
}

void write(Writer& out, const Certificate& certificate) {
    out.number(certificate.id);
    out.number(certificate.generation);
    out.bytes(certificate.signature.raw());
}
Certificate read_certificate(Reader& in) {
    Certificate certificate;
    certificate.id = in.number<std::uint32_t>();
    certificate.generation = in.number<std::uint32_t>();
    certificate.signature = in.id<Signature>();
    if (certificate.id > kNodeIdMax) in.fail();
    return certificate;
}

std::string read_text(Reader& in, std::size_t bytes_max) {
    const std::string_view text = in.text();
    if (text.size() > bytes_max || !printable(text)) in.fail();
    return in.ok() ? std::string(text) : std::string();
}

void write(Writer& out, const std::vector<Member>& members) {
    out.number(static_cast<std::uint16_t>(members.size()));
    for (const Member& member : members) {
        out.number(member.id);
        out.number(member.generation);
        out.text(member.address);
        out.bytes(member.key.raw());
        out.bytes(member.signature.raw());
    }
}
std::vector<Member> read_members(Reader& in, std::size_t most) {
    const auto count = in.number<std::uint16_t>();
    std::vector<Member> members;
    if (count > most) in.fail();
    for (unsigned i = 0; i < count && in.ok(); ++i) {
        Member member;
        member.id = in.number<std::uint32_t>();
        member.generation = in.number<std::uint32_t>();
        member.address = read_text(in, kAddressBytesMax);
        member.key = in.id<PublicKey>();
        member.signature = in.id<Signature>();
        if (member.id > kNodeIdMax || member.address.empty()) in.fail();
        members.push_back(std::move(member));
    }
    return members;
}

void write_bytes(Writer& out, const ByteBuffer& bytes) {
    out.number(static_cast<std::uint16_t>(bytes.size()));
    out.bytes(bytes);
}
ByteBuffer read_bytes(Reader& in, std::size_t bytes_max) {
    const auto size = in.number<std::uint16_t>();
    if (size > bytes_max) in.fail();
    const Bytes bytes = in.take(size);
    return {bytes.begin(), bytes.end()};
}

// Unknown flags make a message malformed; nothing is ignored silently.
std::uint8_t read_flags(Reader& in, std::uint8_t all) {
    const auto flags = in.number<std::uint8_t>();
    if ((flags & ~all) != 0) in.fail();
    return flags;
}

void read(Reader& in, Hello& message) {
    const auto role = in.number<std::uint8_t>();
    if (role > static_cast<std::uint8_t>(Role::member)) in.fail();
    message.role = static_cast<Role>(role);
    message.nonce = in.id<Nonce>();
}

void read(Reader& in, LaneHello& message) {
    message.ticket = in.id<Ticket>();
}

void read(Reader& in, Challenge& message) {
    message.nonce = in.id<Nonce>();
    message.proof = in.id<Proof>();
}

void read(Reader& in, ProofGiven& message) {
    message.proof = in.id<Proof>();
}

void read(Reader& in, Request& message) {
    const std::uint8_t flags = read_flags(in, 3);
    message.has_residents = (flags & 1U) != 0;
    message.replace = (flags & 2U) != 0;
    message.features = in.number<std::uint32_t>();
    message.triple = read_text(in, kTripleBytesMax);
    message.address = read_text(in, kAddressBytesMax);
    message.key = in.id<PublicKey>();
    message.signature = in.id<Signature>();
    message.certificate = read_certificate(in);
    message.whom = in.id<PublicKey>();
    message.offer = read_bytes(in, kOfferBytesMax);
}

void read(Reader& in, Welcome& message) {
    const std::uint8_t flags = read_flags(in, 3);
    message.has_residents = (flags & 1U) != 0;
    message.has_ticket = (flags & 2U) != 0;
    message.features = in.number<std::uint32_t>();
    message.id = in.number<std::uint32_t>();
    message.you = in.number<std::uint32_t>();
    message.count = in.number<std::uint32_t>();
    if (message.id > kNodeIdMax || message.count > kNodeIdMax + 1) in.fail();
    if (!is_client(message.you) && message.you > kNodeIdMax) in.fail();
    message.key = in.id<PublicKey>();
    message.signature = in.id<Signature>();
    message.ticket = in.id<Ticket>();
    message.secret = in.id<LaneSecret>();
    message.triple = read_text(in, kTripleBytesMax);
    const auto resident = in.number<std::uint16_t>();
    if (resident > kResidentMax) in.fail();
    for (unsigned i = 0; i < resident && in.ok(); ++i) message.resident.push_back(in.id<Digest>());
    message.offer = read_bytes(in, kOfferBytesMax);
}

void read(Reader& in, Redirect& message) {
    message.address = read_text(in, kAddressBytesMax);
    if (message.address.empty()) in.fail();
}

void read(Reader& in, Connected& message) {
    const auto by = in.number<std::uint8_t>();
    if (by > static_cast<std::uint8_t>(ConnectedBy::ticket)) in.fail();
    message.by = static_cast<ConnectedBy>(by);
}

void read(Reader& in, Settled& message) {
    message.certificate = read_certificate(in);
    message.cluster = in.id<KeySeed>();
    message.members = read_members(in, kMembersMax);
}

void read(Reader& in, Members& message) {
    message.members = read_members(in, Members::kMost);
}

void read(Reader& in, Goodbye& message) {
    const auto reason = in.number<std::uint8_t>();
    if (reason > static_cast<std::uint8_t>(Goodbye::Reason::another)) in.fail();
    message.reason = static_cast<Goodbye::Reason>(reason);
    const auto code = in.number<std::uint8_t>();
    if (code > static_cast<std::uint8_t>(ErrorCode::internal)) in.fail();
    message.code = static_cast<ErrorCode>(code);
    const std::string_view text = in.text();
    if (text.size() > kGoodbyeTextMax) in.fail();
    if (in.ok()) message.text = text;
    std::ranges::replace_if(message.text, [](char c) { return c < ' ' || c > '~'; }, '?');
}

}  // namespace

ByteBuffer encode(const Hello& message) {
    Writer out = begin<Hello>();
    write_version(out);
    out.number(static_cast<std::uint8_t>(message.role));
    out.bytes(message.nonce.raw());
    return end(std::move(out));
}

ByteBuffer encode(const LaneHello& message) {
    Writer out = begin<LaneHello>();
    write_version(out);
    out.bytes(message.ticket.raw());
    return end(std::move(out));
}

ByteBuffer encode(const Challenge& message) {
    Writer out = begin<Challenge>();
    write_version(out);
    out.bytes(message.nonce.raw());
    out.bytes(message.proof.raw());
    return end(std::move(out));
}

ByteBuffer encode(const ProofGiven& message) {
    Writer out = begin<ProofGiven>();
    out.bytes(message.proof.raw());
    return end(std::move(out));
}

ByteBuffer encode(const Request& message) {
    Writer out = begin<Request>();
    out.number(static_cast<std::uint8_t>((message.has_residents ? 1 : 0) | (message.replace ? 2 : 0)));
    out.number(message.features);
    out.text(message.triple);
    out.text(message.address);
    out.bytes(message.key.raw());
    out.bytes(message.signature.raw());
    write(out, message.certificate);
    out.bytes(message.whom.raw());
    write_bytes(out, message.offer);
    return end(std::move(out));
}

ByteBuffer encode(const Welcome& message) {
    Writer out = begin<Welcome>();
    out.number(static_cast<std::uint8_t>((message.has_residents ? 1 : 0) | (message.has_ticket ? 2 : 0)));
    out.number(message.features);
    out.number(message.id);
    out.number(message.you);
    out.number(message.count);
    out.bytes(message.key.raw());
    out.bytes(message.signature.raw());
    out.bytes(message.ticket.raw());
    out.bytes(message.secret.raw());
    out.text(message.triple);
    out.number(static_cast<std::uint16_t>(message.resident.size()));
    for (const Digest& digest : message.resident) out.bytes(digest.raw());
    write_bytes(out, message.offer);
    return end(std::move(out));
}

ByteBuffer encode(const Redirect& message) {
    Writer out = begin<Redirect>();
    out.text(message.address);
    return end(std::move(out));
}

ByteBuffer encode(const Connected& message) {
    Writer out = begin<Connected>();
    out.number(static_cast<std::uint8_t>(message.by));
    return end(std::move(out));
}

ByteBuffer encode(const Settled& message) {
    Writer out = begin<Settled>();
    write(out, message.certificate);
    out.bytes(message.cluster.raw());
    write(out, message.members);
    return end(std::move(out));
}

ByteBuffer encode(const Members& message) {
    Writer out = begin<Members>();
    write(out, message.members);
    return end(std::move(out));
}

ByteBuffer encode(const Goodbye& message) {
    Writer out = begin<Goodbye>();
    out.number(static_cast<std::uint8_t>(message.reason));
    out.number(static_cast<std::uint8_t>(message.code));
    out.text(std::string_view(message.text).substr(0, kGoodbyeTextMax));
    return end(std::move(out));
}

std::optional<Kind> kind_of(Bytes body) {
    const auto kind = body.empty() ? 0U : std::to_integer<unsigned>(body.front());
    if (kind == 0 || kind > static_cast<unsigned>(Kind::goodbye)) return std::nullopt;
    return static_cast<Kind>(kind);
}

template <typename ControlMessage>
Result<ControlMessage> decode(Bytes body) {
    if (kind_of(body) != ControlMessage::kKind)
        return fail(ErrorCode::invalid, "its control message is no {}", ControlMessage::kName);
    Reader in(body.subspan(1));
    if constexpr (std::is_same_v<ControlMessage, Hello> || std::is_same_v<ControlMessage, LaneHello> ||
                  std::is_same_v<ControlMessage, Challenge>)
        ROVE_CHECK(read_version(in));
    ControlMessage message;
    read(in, message);
    if (!in.done()) return fail(ErrorCode::invalid, "its control message '{}' is malformed", ControlMessage::kName);
    return message;
}
template Result<Hello> decode(Bytes);
template Result<LaneHello> decode(Bytes);
template Result<Challenge> decode(Bytes);
template Result<ProofGiven> decode(Bytes);
template Result<Request> decode(Bytes);
template Result<Welcome> decode(Bytes);
template Result<Redirect> decode(Bytes);
template Result<Connected> decode(Bytes);
template Result<Settled> decode(Bytes);
template Result<Members> decode(Bytes);
template Result<Goodbye> decode(Bytes);

Member member_of(const Request& request) {
    return {.id = request.certificate.id,
            .generation = request.certificate.generation,
            .address = request.address,
            .key = request.key,
            .signature = request.certificate.signature};
}

ByteBuffer statement(const Member& member) {
    Writer out;
    out.text("rove member 2");
    out.number(member.id);
    out.number(member.generation);
    out.text(member.address);
    out.bytes(member.key.raw());
    return out.take();
}

ByteBuffer statement(std::string_view side, const Nonce& node, const Nonce& peer, std::string_view bound) {
    Writer out;
    out.text("rove key 2");
    out.text(side);
    out.bytes(node.raw());
    out.bytes(peer.raw());
    out.text(bound);
    return out.take();
}

}  // namespace rove::wire::control
