/* usage: late_free KIND WHEN: makes what the letters of KIND say, and frees it when libcrypto has ended, as the destructor of a C++ global
 * does. WHEN: `exit` by the handlers at exit, `cleanup` by OPENSSL_cleanup in mid-program, `unload` after the providers of a library context
 * of its own were unloaded, and that context with them. */
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned char key[64] = {1}, iv[16] = {2};
static unsigned char in[70000], out[70100];

static EVP_MD *md;
static EVP_MD_CTX *md_ctx;
static EVP_CIPHER *cipher;
static EVP_CIPHER_CTX *cipher_ctx, *aead_ctx;
static EVP_MAC *mac;
static EVP_MAC_CTX *mac_ctx;
static EVP_KDF *kdf;
static EVP_RAND *rand_method;
static EVP_PKEY *pkey;
static SSL_CTX *ssl;

static void free_all(void) {
    EVP_CIPHER_CTX_free(cipher_ctx);
    EVP_CIPHER_CTX_free(aead_ctx);
    EVP_CIPHER_free(cipher);
    EVP_MD_CTX_free(md_ctx);
    EVP_MD_free(md);
    EVP_MAC_CTX_free(mac_ctx);
    EVP_MAC_free(mac);
    EVP_KDF_free(kdf);
    EVP_RAND_free(rand_method);
    EVP_PKEY_free(pkey);
    SSL_CTX_free(ssl);
    if (write(1, "freed\n", 6) != 6) _exit(1);
}

static int encrypt(OSSL_LIB_CTX *lib, EVP_CIPHER_CTX **ctx, const char *name) {
    int n;
    EVP_CIPHER *method = EVP_CIPHER_fetch(lib, name, NULL);
    *ctx = EVP_CIPHER_CTX_new();
    int ok = EVP_EncryptInit_ex(*ctx, method, NULL, key, iv) && EVP_EncryptUpdate(*ctx, out, &n, in, 65536);
    EVP_CIPHER_free(method);
    return ok;
}

static int make(OSSL_LIB_CTX *lib, char kind) {
    switch (kind) {
    case 'd': return (md = EVP_MD_fetch(lib, "SHA256", NULL)) != NULL;
    case 'D':
        md = EVP_MD_fetch(lib, "SHA256", NULL);
        md_ctx = EVP_MD_CTX_new();
        return EVP_DigestInit_ex(md_ctx, md, NULL) && EVP_DigestUpdate(md_ctx, in, 1000);
    case 'c': return (cipher = EVP_CIPHER_fetch(lib, "AES-128-CBC", NULL)) != NULL;
    case 'C': return encrypt(lib, &cipher_ctx, "AES-128-CBC");
    case 'G': return encrypt(lib, &aead_ctx, "AES-256-GCM");
    case 'M':
        mac = EVP_MAC_fetch(lib, "HMAC", NULL);
        mac_ctx = EVP_MAC_CTX_new(mac);
        OSSL_PARAM digest[] = {OSSL_PARAM_utf8_string("digest", "SHA256", 6), OSSL_PARAM_END};
        return EVP_MAC_init(mac_ctx, key, 32, digest) && EVP_MAC_update(mac_ctx, in, 1000);
    case 'K': return (kdf = EVP_KDF_fetch(lib, "HKDF", NULL)) != NULL;
    case 'R': return (rand_method = EVP_RAND_fetch(lib, "CTR-DRBG", NULL)) != NULL;
    case 'P': return (pkey = EVP_PKEY_Q_keygen(lib, NULL, "X25519")) != NULL;
    case 'S': return (ssl = SSL_CTX_new_ex(lib, NULL, TLS_method())) != NULL;
    default: return 0;
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *when = argv[2];
    /* Registered before libcrypto's: runs behind it. */
    if (atexit(free_all)) return 2;
    OSSL_LIB_CTX *lib = NULL;
    OSSL_PROVIDER *evener = NULL, *standard = NULL;
    if (!strcmp(when, "unload")) {
        const char *module = getenv("LATE_FREE_MODULE");
        lib = OSSL_LIB_CTX_new();
        standard = OSSL_PROVIDER_load(lib, "default");
        if (module) evener = OSSL_PROVIDER_load(lib, module);
        if (module) {
            EVP_CIPHER *ours = EVP_CIPHER_fetch(lib, "AES-128-CBC", "provider=evener");
            if (!evener || !ours || !EVP_set_default_properties(lib, "?provider=evener")) return 3;
            EVP_CIPHER_free(ours);
        }
    }
    for (const char *kind = argv[1]; *kind; kind++)
        if (!make(lib, *kind)) return 4;
    if (lib) {
        if (evener && !OSSL_PROVIDER_unload(evener)) return 5;
        if (!OSSL_PROVIDER_unload(standard)) return 5;
    }
    if (!strcmp(when, "cleanup")) OPENSSL_cleanup();
    return 0;
}
