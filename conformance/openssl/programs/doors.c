/* usage: doors DOOR BYTES COUNT: messages through one door of OpenSSL's, so many of so many bytes. A cipher's result is compared with the
 * default provider's. Ends with 0 where all went well and came out as there. */
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1 << 20)
static unsigned char key[64], iv[16] = {2}, in[MOST];
static int bytes, count;

/* Output of COUNT messages that follow each other in one context. */
static int by_cipher(const char *how, const char *name, const char *properties, int encrypts, unsigned char *out) {
    int n, ok = 1, at = 0;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, properties);
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
    if (!cipher || !x) return 0;
    ok = EVP_CipherInit_ex2(x, cipher, key, iv, encrypts, NULL);
    for (int i = 0; i < count && ok; i++) {
        if (!strcmp(how, "one-shot")) {
            ok = EVP_Cipher(x, out + at, in, bytes) == bytes;
            n = bytes;
        } else if (!strcmp(how, "one-shot-aead")) {
            ok = EVP_CipherInit_ex2(x, NULL, NULL, iv, encrypts, NULL) && EVP_Cipher(x, NULL, in, 13) == 13 && EVP_Cipher(x, out + at, in, bytes) == bytes &&
                 EVP_Cipher(x, NULL, NULL, 0) >= 0;
            n = bytes;
        } else {
            int last;
            ok = EVP_CipherInit_ex2(x, NULL, NULL, iv, encrypts, NULL) && EVP_CIPHER_CTX_set_padding(x, 0) && EVP_CipherUpdate(x, out + at, &n, in, bytes) &&
                 EVP_CipherFinal_ex(x, out + at + n, &last) && !last;
        }
        at += n;
    }
    EVP_CIPHER_CTX_free(x);
    EVP_CIPHER_free(cipher);
    return ok;
}

static int cipher(const char *how, const char *name, int encrypts) {
    unsigned char *both[2] = {calloc(count + 1, bytes), calloc(count + 1, bytes)};
    int ok = by_cipher(how, name, NULL, encrypts, both[0]) && by_cipher(how, name, "provider=default", encrypts, both[1]);
    return ok && !memcmp(both[0], both[1], (size_t)count * bytes);
}

static int mac(const char *name, const char *kind, const char *of) {
    unsigned char tag[64];
    size_t n;
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(kind, (char *)of, 0), OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, name, NULL);
    EVP_MAC_CTX *x = EVP_MAC_CTX_new(mac);
    int ok = 1;
    for (int i = 0; i < count && ok; i++)
        ok = EVP_MAC_init(x, key, 16, parameters) && EVP_MAC_update(x, in, bytes) && EVP_MAC_final(x, tag, &n, sizeof tag);
    EVP_MAC_CTX_free(x);
    EVP_MAC_free(mac);
    return ok;
}

static int digest(const char *how) {
    unsigned char out[64], parted[2][64];
    size_t n;
    int ok = 1;
    EVP_MD_CTX *x = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();
    for (int i = 0; i < count && ok; i++) {
        if (!strcmp(how, "digest")) ok = EVP_Digest(in, bytes, out, NULL, EVP_sha256(), NULL);
        else if (!strcmp(how, "digest-quick")) ok = EVP_Q_digest(NULL, "SHA256", NULL, in, bytes, out, &n);
        else if (!strcmp(how, "digest-old")) ok = SHA256(in, bytes, out) != NULL;
        else if (!strcmp(how, "digest-copy"))
            ok = EVP_DigestInit_ex(x, EVP_sha256(), NULL) && EVP_DigestUpdate(x, in, bytes / 2) && EVP_MD_CTX_copy_ex(copy, x) &&
                 EVP_DigestUpdate(copy, in + bytes / 2, bytes - bytes / 2) && EVP_DigestFinal_ex(copy, parted[0], NULL) &&
                 EVP_Digest(in, bytes, parted[1], NULL, EVP_sha256(), NULL) && !memcmp(parted[0], parted[1], 32);
        else if (!strcmp(how, "hmac")) ok = HMAC(EVP_sha256(), key, 16, in, bytes, out, NULL) != NULL;
        else if (!strcmp(how, "hmac-quick")) ok = EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key, 16, in, bytes, out, sizeof out, &n) != NULL;
        else ok = EVP_DigestInit_ex(x, EVP_sha256(), NULL) && EVP_DigestUpdate(x, in, bytes) && EVP_DigestFinal_ex(x, out, NULL);
    }
    EVP_MD_CTX_free(x);
    EVP_MD_CTX_free(copy);
    return ok;
}

static int certify(SSL_CTX *server) {
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, pair);
    return X509_sign(certificate, pair, EVP_sha256()) && SSL_CTX_use_certificate(server, certificate) && SSL_CTX_use_PrivateKey(server, pair);
}

/* Records between two ends in memory, COUNT messages of BYTES each way. */
static int tls(int version, const char *suites, int etm) {
    SSL_CTX *contexts[2] = {SSL_CTX_new(TLS_server_method()), SSL_CTX_new(TLS_client_method())};
    SSL *ends[2];
    BIO *pair[2];
    BIO_new_bio_pair(&pair[0], 1 << 17, &pair[1], 1 << 17);
    for (int i = 0; i < 2; i++) {
        SSL_CTX_set_security_level(contexts[i], 0);
        SSL_CTX_set_min_proto_version(contexts[i], version);
        SSL_CTX_set_max_proto_version(contexts[i], version);
        if (!(version == TLS1_3_VERSION ? SSL_CTX_set_ciphersuites(contexts[i], suites) : SSL_CTX_set_cipher_list(contexts[i], suites))) return 0;
        if (!etm) SSL_CTX_set_options(contexts[i], SSL_OP_NO_ENCRYPT_THEN_MAC);
    }
    if (!certify(contexts[0])) return 0;
    for (int i = 0; i < 2; i++) {
        ends[i] = SSL_new(contexts[i]);
        SSL_set_bio(ends[i], pair[i], pair[i]);
        i ? SSL_set_connect_state(ends[i]) : SSL_set_accept_state(ends[i]);
    }
    for (int i = 0; i < 50; i++) SSL_do_handshake(ends[!(i % 2)]);
    static unsigned char got[1 << 16];
    for (int i = 0; i < 2 * count; i++) {
        int from = i % 2, at = 0, n;
        if (SSL_write(ends[from], in, bytes) != bytes) return 0;
        while (at < bytes && (n = SSL_read(ends[!from], got + at, bytes - at)) > 0) at += n;
        if (at != bytes || memcmp(in, got, bytes)) return 0;
    }
    SSL_free(ends[0]);
    SSL_free(ends[1]);
    SSL_CTX_free(contexts[0]);
    SSL_CTX_free(contexts[1]);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *door = argv[1];
    bytes = atoi(argv[2]);
    count = atoi(argv[3]);
    for (int i = 0; i < MOST; i++) in[i] = i * 7 + (i >> 8);
    for (int i = 0; i < 64; i++) key[i] = i * 11;
    if (bytes > MOST) return 2;
    int ok;
    if (!strcmp(door, "update")) ok = cipher("update", "AES-128-CBC", 1);
    else if (!strcmp(door, "update-decrypting")) ok = cipher("update", "AES-128-CBC", 0);
    else if (!strcmp(door, "one-shot-ecb")) ok = cipher("one-shot", "AES-128-ECB", 1);
    else if (!strcmp(door, "one-shot-cbc")) ok = cipher("one-shot", "AES-128-CBC", 1);
    else if (!strcmp(door, "one-shot-cbc-decrypting")) ok = cipher("one-shot", "AES-128-CBC", 0);
    else if (!strcmp(door, "one-shot-ctr")) ok = cipher("one-shot", "AES-128-CTR", 1);
    else if (!strcmp(door, "one-shot-xts")) ok = cipher("one-shot", "AES-128-XTS", 1);
    else if (!strcmp(door, "aead")) ok = cipher("update", "AES-128-GCM", 1);
    else if (!strcmp(door, "one-shot-aead")) ok = cipher("one-shot-aead", "AES-128-GCM", 1);
    else if (!strcmp(door, "cmac")) ok = mac("CMAC", OSSL_MAC_PARAM_CIPHER, "AES-128-CBC");
    else if (!strcmp(door, "hmac-update")) ok = mac("HMAC", OSSL_MAC_PARAM_DIGEST, "SHA256");
    else if (!strcmp(door, "tls-1.0")) ok = tls(TLS1_VERSION, "ECDHE-ECDSA-AES128-SHA", 1);
    else if (!strcmp(door, "tls-1.1")) ok = tls(TLS1_1_VERSION, "ECDHE-ECDSA-AES128-SHA", 1);
    else if (!strcmp(door, "tls-1.2")) ok = tls(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256", 1);
    else if (!strcmp(door, "tls-1.2-mac-inside")) ok = tls(TLS1_2_VERSION, "ECDHE-ECDSA-AES256-SHA384", 0);
    else if (!strcmp(door, "tls-1.2-stitched")) ok = tls(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256", 0);
    else if (!strcmp(door, "tls-1.2-aead")) ok = tls(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", 1);
    else if (!strcmp(door, "tls-1.3")) ok = tls(TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256", 1);
    else ok = digest(door);
    if (!ok) fprintf(stderr, "%s failed\n", door);
    return !ok;
}
