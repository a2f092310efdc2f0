/*
 * OCF on Linux, as far as OpenSSL's engines/e_devcrypto.c needs it: numbers and layouts of cryptodev-linux's interface.
 * No distribution of Debian packages that header.
 */
#ifndef CRYPTODEV_FOR_TESTS_H
#define CRYPTODEV_FOR_TESTS_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define CRYPTO_DES_CBC 1
#define CRYPTO_3DES_CBC 2
#define CRYPTO_BLF_CBC 3
#define CRYPTO_CAST_CBC 4
#define CRYPTO_AES_CBC 11
#define CRYPTO_ARC4 12
#define CRYPTO_MD5 13
#define CRYPTO_SHA1 14
#define CRYPTO_AES_CTR 21
#define CRYPTO_AES_ECB 23
#define CRYPTO_CAMELLIA_CBC 101

#define COP_ENCRYPT 0
#define COP_DECRYPT 1
#define COP_FLAG_WRITE_IV (1 << 2)
#define SIOP_FLAG_KERNEL_DRIVER_ONLY 1
#define CRYPTODEV_MAX_ALG_NAME 64

struct session_op {
    __u32 cipher;
    __u32 mac;
    __u32 keylen;
    __u8 *key;
    __u32 mackeylen;
    __u8 *mackey;
    __u32 ses;
};

struct session_info_op {
    __u32 ses;
    struct alg_info {
        char cra_name[CRYPTODEV_MAX_ALG_NAME];
        char cra_driver_name[CRYPTODEV_MAX_ALG_NAME];
    } cipher_info, hash_info;
    __u16 alignmask;
    __u32 flags;
};

struct crypt_op {
    __u32 ses;
    __u16 op;
    __u16 flags;
    __u32 len;
    __u8 *src;
    __u8 *dst;
    __u8 *mac;
    __u8 *iv;
};

#define CIOCGSESSION _IOWR('c', 102, struct session_op)
#define CIOCFSESSION _IOW('c', 103, __u32)
#define CIOCCRYPT _IOWR('c', 104, struct crypt_op)
#define CIOCGSESSINFO _IOWR('c', 107, struct session_info_op)

#endif
