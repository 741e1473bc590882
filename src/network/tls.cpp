#include "network/tls.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <cstring>

#include "core/error.h"
#include "network/certificates.h"
#include "network/secret_file.h"
#include "network/tls_stream.h"

namespace cohort::network {
namespace {

constexpr char kCipher[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherId[] = {0x13, 0x01};
constexpr std::size_t kMaxPem = 64 << 10;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw ConfigError(file.string() + " cannot be used: " + why +
                    "; `cohort token --tls-dir` makes certificates for all processes of a job");
}

// A session that never was: TLS 1.3 takes up a key that both know as if from an earlier one.
SSL_SESSION* make_psk_session(SSL* ssl, const TlsContext::State& state) {
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kCipherId);
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, state.psk.data(), state.psk.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int offer_psk(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
              SSL_SESSION** session) {
  const auto& state = *static_cast<const TlsContext::State*>(SSL_get_app_data(ssl));
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
  *session = make_psk_session(ssl, state);
  *identity = reinterpret_cast<const unsigned char*>(state.psk_identity.data());
  *size = state.psk_identity.size();
  return *session != nullptr ? 1 : 0;
}

int find_psk(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const auto& state = *static_cast<const TlsContext::State*>(SSL_get_app_data(ssl));
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(identity), size) != state.psk_identity) {
    return 1;  // goes on without it, and ends for want of a certificate
  }
  *session = make_psk_session(ssl, state);
  return *session != nullptr ? 1 : 0;
}

void use_token(TlsContext::State& state, const std::string& token) {
  if (!is_token(token)) {
    throw ConfigError("the token is none: it is the 64 digits that `cohort token` prints");
  }
  const std::string text = "cohort tls 1.3 external psk, job " + to_text(state.self.job);
  unsigned int size = 0;
  COHORT_CHECK(HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                    state.psk.data(), &size) != nullptr &&
                   size == state.psk.size(),
               "HMAC failed");
  state.by_token = true;
  state.psk_identity = "cohort job " + to_text(state.self.job);
  SSL_CTX* context = state.context.get();
  SSL_CTX_set_psk_use_session_callback(context, offer_psk);
  SSL_CTX_set_psk_find_session_callback(context, find_psk);
  if (state.end == TlsContext::End::kConnects) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // which none passes
  }
}

void use_certificates(TlsContext::State& state, const std::filesystem::path& folder) {
  SSL_CTX* context = state.context.get();
  const auto authority = folder / "authority.pem";
  const auto certificate = folder / "certificate.pem";
  const auto key = folder / "key.pem";
  read_secret_file(key, kMaxPem);  // complains when others can read it
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context, authority.c_str()) != 1) {
    refuse(authority, take_openssl_error());
  }
  if (SSL_CTX_use_certificate_file(context, certificate.c_str(), SSL_FILETYPE_PEM) != 1) {
    refuse(certificate, take_openssl_error());
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    refuse(key, take_openssl_error());
  }
  const auto named = identity_in(SSL_CTX_get0_certificate(context));
  if (!named) refuse(certificate, "it names no process of a job");
  if (named->job != state.self.job) refuse(certificate, "it is of another job");
  if (*named != state.self) {
    refuse(certificate, "it is that of " + named->text() + ", and this is " + state.self.text());
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

}  // namespace

TlsContext::State::~State() { OPENSSL_cleanse(psk.data(), psk.size()); }

TlsContext::TlsContext(const Credentials& credentials, const Identity& self, End end)
    : state_(std::make_shared<State>()) {
  state_->self = self;
  state_->end = end;
  state_->context.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = state_->context.get();
  COHORT_CHECK(context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context, kCipher) == 1 &&
                   SSL_CTX_set_num_tickets(context, 0) == 1,
               "OpenSSL without TLS 1.3");
  // The end of a connection is said by a frame of our own; a mere end of the stream is no error.
  SSL_CTX_set_options(context,
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kTlsReadAhead);
  if (!credentials.tls_dir.empty()) {
    use_certificates(*state_, credentials.tls_dir);
  } else {
    use_token(*state_, credentials.token);
  }
}

TlsContext::~TlsContext() = default;

std::unique_ptr<Stream> TlsContext::make_stream(int descriptor,
                                                std::uint64_t records_of_a_key) const {
  return make_tls_stream(state_, descriptor, records_of_a_key);
}

}  // namespace cohort::network
