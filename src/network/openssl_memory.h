// Owners of what OpenSSL allocates, and its last error as text. Only for files of this layer.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace cohort::network {

template <auto release>
struct OpenSslRelease {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};

using OpenSslKey = std::unique_ptr<EVP_PKEY, OpenSslRelease<EVP_PKEY_free>>;
using OpenSslCertificate = std::unique_ptr<X509, OpenSslRelease<X509_free>>;
using OpenSslNumber = std::unique_ptr<BIGNUM, OpenSslRelease<BN_free>>;
using OpenSslBio = std::unique_ptr<BIO, OpenSslRelease<BIO_free_all>>;
using OpenSslNames = std::unique_ptr<GENERAL_NAMES, OpenSslRelease<GENERAL_NAMES_free>>;
using OpenSslContext = std::unique_ptr<SSL_CTX, OpenSslRelease<SSL_CTX_free>>;
using OpenSslConnection = std::unique_ptr<SSL, OpenSslRelease<SSL_free>>;

inline std::string text_in(BIO& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

// The oldest error of this thread, after which there are none.
inline std::string take_openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason != nullptr ? reason : "no reason given";
}

}  // namespace cohort::network
