#include "network/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/text.h"
#include "network/credentials.h"
#include "network/openssl_memory.h"
#include "network/secret_file.h"

namespace cohort::network {
namespace {

constexpr int kSerialBytes = 16;
constexpr long kVersion3 = 2;

void require(bool good, const char* what) {
  if (!good) throw RunError(std::string("cannot make certificates: ") + what + " failed");
}

OpenSslKey make_key() {
  OpenSslKey key(EVP_EC_gen("P-256"));
  require(key != nullptr, "making a key");
  return key;
}

void add_extension(X509& certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &certificate, &certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  require(extension != nullptr, "an extension");
  const bool added = X509_add_ext(&certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  require(added, "an extension");
}

void set_time(ASN1_TIME* place, std::chrono::system_clock::time_point time) {
  require(ASN1_TIME_set(place, std::chrono::system_clock::to_time_t(time)) != nullptr, "a time");
}

// All but issuer, extensions and signature.
OpenSslCertificate begin_certificate(EVP_PKEY& key, const std::string& name,
                                     const Validity& validity) {
  OpenSslCertificate made(X509_new());
  require(made != nullptr && X509_set_version(made.get(), kVersion3) == 1, "a certificate");
  unsigned char serial[kSerialBytes];
  require(RAND_bytes(serial, sizeof serial) == 1, "a random number");
  serial[0] &= 0x7f;  // serial numbers are positive
  const OpenSslNumber number(BN_bin2bn(serial, sizeof serial, nullptr));
  require(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get())) != nullptr,
          "a serial number");
  set_time(X509_getm_notBefore(made.get()), validity.from);
  set_time(X509_getm_notAfter(made.get()), validity.until);
  require(X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                                     reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                     0) == 1,
          "a name");
  require(X509_set_pubkey(made.get(), &key) == 1, "a key");
  return made;
}

std::string pem_of(const X509* certificate) {
  const OpenSslBio memory(BIO_new(BIO_s_mem()));
  require(PEM_write_bio_X509(memory.get(), certificate) == 1, "writing a certificate");
  return text_in(*memory);
}

std::string pem_of(const EVP_PKEY* key) {
  const OpenSslBio memory(BIO_new(BIO_s_mem()));
  require(
      PEM_write_bio_PKCS8PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
      "writing a key");
  return text_in(*memory);
}

void make_folder(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw FileError("cannot make the folder " + folder.string() + ": " + std::strerror(errno));
  }
}

}  // namespace

std::string certificate_uri(const Identity& identity) {
  return "cohort:job/" + to_text(identity.job) + "/role/" + std::string(to_text(identity.role)) +
         "/rank/" + std::to_string(identity.rank);
}

std::optional<Identity> parse_certificate_uri(const std::string& uri) {
  const auto parts = split(uri, '/');
  if (parts.size() != 6) return std::nullopt;
  Identity identity;
  try {
    identity.job = parse_job_id(parts[1]);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  identity.role = parts[3] == to_text(Role::kServer) ? Role::kServer : Role::kWorker;
  const std::string& rank = parts[5];
  std::from_chars(rank.data(), rank.data() + rank.size(), identity.rank);
  // The one way of writing it and no other.
  if (identity.rank < 0 || certificate_uri(identity) != uri) return std::nullopt;
  return identity;
}

std::optional<Identity> identity_in(const X509* certificate) {
  const OpenSslNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) return std::nullopt;
  const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) return std::nullopt;
  const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
  return parse_certificate_uri(
      std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                  static_cast<std::size_t>(ASN1_STRING_length(uri))));
}

struct Authority::State {
  OpenSslKey key;
  OpenSslCertificate certificate;
};

Authority::Authority(const JobId& job, const Validity& validity)
    : state_(std::make_unique<State>()) {
  state_->key = make_key();
  state_->certificate =
      begin_certificate(*state_->key, "cohort job " + to_text(job).substr(0, 8), validity);
  X509& made = *state_->certificate;
  require(X509_set_issuer_name(&made, X509_get_subject_name(&made)) == 1, "a name");
  add_extension(made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(made, NID_key_usage, "critical,keyCertSign");
  require(X509_sign(&made, state_->key.get(), EVP_sha256()) > 0, "signing");
}

Authority::~Authority() = default;

std::string Authority::certificate() const { return pem_of(state_->certificate.get()); }

IssuedCertificate Authority::issue(const Identity& identity, const Validity& validity) const {
  const OpenSslKey key = make_key();
  const auto made = begin_certificate(*key, "cohort " + identity.text(), validity);
  require(X509_set_issuer_name(made.get(), X509_get_subject_name(state_->certificate.get())) == 1,
          "a name");
  add_extension(*made, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*made, NID_key_usage, "critical,digitalSignature");
  add_extension(*made, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(*made, NID_subject_alt_name, "URI:" + certificate_uri(identity));
  require(X509_sign(made.get(), state_->key.get(), EVP_sha256()) > 0, "signing");
  return {pem_of(made.get()), pem_of(key.get())};
}

void make_authority(const std::filesystem::path& folder, const JobId& job, int servers, int workers,
                    int valid_days) {
  const auto now = std::chrono::system_clock::now();
  // Clocks of other hosts may be late.
  const Validity validity{now - std::chrono::hours(1), now + std::chrono::hours(24) * valid_days};
  const Authority authority(job, validity);
  make_folder(folder);
  write_secret_file(folder / "authority.pem", authority.certificate());
  const auto issue = [&](Role role, int count) {
    for (Rank rank = 0; rank < count; ++rank) {
      const auto place = folder / (std::string(to_text(role)) + "-" + std::to_string(rank));
      const auto issued = authority.issue({job, role, rank}, validity);
      make_folder(place);
      write_secret_file(place / "authority.pem", authority.certificate());
      write_secret_file(place / "certificate.pem", issued.certificate);
      write_secret_file(place / "key.pem", issued.key);
    }
  };
  issue(Role::kServer, servers);
  issue(Role::kWorker, workers);
}

}  // namespace cohort::network
