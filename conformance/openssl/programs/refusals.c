/* usage: refusals: calls of AES-GCM that a program makes by mistake, and a line for each: what it answers, and all that is on the error queue then. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>

static unsigned char key[32] = {1}, iv[200] = {2}, in[300], out[300], tag[16] = {9};
static unsigned char too_short[13], record[13] = {[8] = 23, 3, 3, 0, 60};
static int n;

static void tell(const char *call, int answer) {
    const char *data;
    unsigned long code;
    int flags;
    printf("%s: %d", call, answer);
    while ((code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags))) {
        const char *reason = ERR_reason_error_string(code);
        printf(" [%d, %d, %s, %s]", ERR_GET_LIB(code), ERR_GET_REASON(code), reason ? reason : "?", data);
    }
    printf("\n");
}

#define CALL(call) tell(#call, call)
#define CTRL(type, bytes, place) CALL(EVP_CIPHER_CTX_ctrl(x, type, bytes, place))

static EVP_CIPHER_CTX *begun(const EVP_CIPHER *cipher, const unsigned char *with_key, const unsigned char *with_iv, int encrypts) {
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
    printf("-- key %d, iv %d, encrypts %d\n", !!with_key, !!with_iv, encrypts);
    CALL(EVP_CipherInit_ex2(x, cipher, with_key, with_iv, encrypts, NULL));
    return x;
}

static void work(EVP_CIPHER_CTX *x) {
    CALL(EVP_CIPHER_CTX_get_original_iv(x, out, 12));
    CALL(EVP_CIPHER_CTX_get_updated_iv(x, out, 12));
    CALL(EVP_CIPHER_CTX_get_original_iv(x, out, 4));
    CALL(EVP_CipherUpdate(x, out, &n, in, 16));
    CALL(EVP_CipherUpdate(x, NULL, &n, in, 16));
    CALL(EVP_CipherFinal_ex(x, out, &n));
    CALL(EVP_CipherFinal_ex(x, out, &n));
    CALL(EVP_CipherUpdate(x, out, &n, in, 16));
    CALL(EVP_CipherUpdate(x, NULL, &n, in, 16));
    CALL(EVP_Cipher(x, out, in, 16));
    CALL(EVP_Cipher(x, NULL, in, 16));
    CALL(EVP_Cipher(x, NULL, NULL, 0));
}

static void settings(EVP_CIPHER_CTX *x) {
    CTRL(EVP_CTRL_GCM_SET_IV_INV, 8, iv);
    CTRL(EVP_CTRL_GCM_IV_GEN, 8, out);
    CTRL(EVP_CTRL_AEAD_SET_IVLEN, 0, NULL);
    CTRL(EVP_CTRL_AEAD_SET_IVLEN, 200, NULL);
    CTRL(EVP_CTRL_AEAD_SET_IV_FIXED, 3, iv);
    CTRL(EVP_CTRL_AEAD_SET_IV_FIXED, 8, iv);
    CTRL(EVP_CTRL_AEAD_GET_TAG, 16, out);
    CTRL(EVP_CTRL_AEAD_GET_TAG, 17, out);
    CTRL(EVP_CTRL_AEAD_SET_TAG, 17, iv);
    CTRL(EVP_CTRL_AEAD_SET_TAG, 16, tag);
    CTRL(EVP_CTRL_AEAD_TLS1_AAD, 12, record);
    CTRL(EVP_CTRL_AEAD_TLS1_AAD, 13, too_short);
}

static void records(EVP_CIPHER_CTX *x) {
    for (int way = 0; way < 2; way++) {
        CTRL(EVP_CTRL_AEAD_TLS1_AAD, 13, record);
        CALL(EVP_CipherUpdate(x, NULL, &n, in, 16));
        CTRL(EVP_CTRL_AEAD_TLS1_AAD, 13, record);
        CALL(EVP_CipherUpdate(x, out, &n, out, 68));
        CTRL(EVP_CTRL_AEAD_TLS1_AAD, 13, record);
        CALL(EVP_Cipher(x, out, out, 68));
        CTRL(EVP_CTRL_AEAD_TLS1_AAD, 13, record);
        CALL(EVP_Cipher(x, out, in, 68));
        CTRL(EVP_CTRL_AEAD_TLS1_AAD, 13, record);
        CALL(EVP_CipherFinal_ex(x, out, &n));
        CTRL(EVP_CTRL_AEAD_SET_IV_FIXED, -1, iv);
        CTRL(EVP_CTRL_GCM_IV_GEN, 8, out);
        CTRL(EVP_CTRL_GCM_SET_IV_INV, 8, iv);
    }
}

static void lists(EVP_CIPHER_CTX *x) {
    unsigned number = 16;
    char text[48] = "";
    const char *names[] = {"ivlen", "keylen", "taglen", "iv", "updated-iv", "tlsaadpad", "tag", "tlsivgen", "tlsaad", "tlsivfixed", "tlsivinv", "other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int kind = 0; kind < 5; kind++) {
            OSSL_PARAM kinds[] = {
                OSSL_PARAM_construct_uint(names[i], &number),
                OSSL_PARAM_construct_utf8_string(names[i], text, sizeof text),
                OSSL_PARAM_construct_octet_string(names[i], text, 0),
                OSSL_PARAM_construct_octet_string(names[i], text, 3),
                OSSL_PARAM_construct_octet_string(names[i], NULL, 0),
            };
            OSSL_PARAM list[] = {kinds[kind], OSSL_PARAM_construct_end()};
            printf("%s, %d: ", names[i], kind);
            CALL(EVP_CIPHER_CTX_set_params(x, list));
            CALL(EVP_CIPHER_CTX_get_params(x, list));
        }
}

int main(void) {
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    static void (*const parts[])(EVP_CIPHER_CTX *) = {work, settings, records, lists};
    for (int encrypts = 0; encrypts < 2; encrypts++)
        for (int given = 0; given < 4; given++)
            for (size_t part = 0; part < 4; part++) {
                EVP_CIPHER_CTX *x = begun(cipher, given & 1 ? key : NULL, given & 2 ? iv : NULL, encrypts);
                parts[part](x);
                work(x);
                EVP_CIPHER_CTX_free(x);
            }
    EVP_CIPHER_free(cipher);
    return 0;
}
