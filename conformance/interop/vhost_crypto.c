// A back end of vhost-user-crypto by other hands, for tests of our front end: DPDK's rte_vhost_crypto over its device
// crypto_openssl.
//
//     vhost_crypto [options of DPDK] -- SOCKET
//
// connection (DPDK's thread) -> crypto instance -> ring is set up -> main fetches requests, has the device run them, gives them
// back and calls. It prints "ready" and serves one connection after the other until it is killed, at the latest with its parent.
#include <stdatomic.h>
#include <stdio.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_cryptodev.h>
#include <rte_eal.h>
#include <rte_vhost.h>
#include <rte_vhost_crypto.h>

enum { BURST = 32, DEVICE = 0, SOCKET_ID = 0, POLL_US = 20, NOBODY = -1, FEATURE_CONFIG = 9 };

static struct rte_mempool *sessions;
// Who is served: written by DPDK's thread. Whether the main thread works for them: written by that thread.
static atomic_int served = NOBODY;
static atomic_int busy;

static int connected(int vid)
{
	int code = rte_vhost_crypto_create(vid, DEVICE, sessions, SOCKET_ID);
	return code ? code : rte_vhost_crypto_set_zero_copy(vid, RTE_VHOST_CRYPTO_ZERO_COPY_DISABLE);
}

// Before its ring is set up, fetching from a connection would crash.
static int ring_is_there(int vid)
{
	atomic_store(&served, vid);
	return 0;
}

static void ring_goes(int vid)
{
	(void)vid;
	atomic_store(&served, NOBODY);
	while (atomic_load(&busy))
		usleep(POLL_US);
}

static void disconnected(int vid)
{
	ring_goes(vid);
	rte_vhost_crypto_free(vid);
}

static const struct rte_vhost_device_ops connection = {
	.new_connection = connected,
	.new_device = ring_is_there,
	.destroy_device = ring_goes,
	.destroy_connection = disconnected,
};

static int prepare(struct rte_mempool **operations)
{
	struct rte_cryptodev_config device = {.nb_queue_pairs = 1, .ff_disable = RTE_CRYPTODEV_FF_SECURITY};
	struct rte_cryptodev_qp_conf queue = {.nb_descriptors = 1024};
	unsigned bytes = rte_cryptodev_sym_get_private_session_size(DEVICE);

	if (rte_cryptodev_count() == 0 || rte_cryptodev_configure(DEVICE, &device))
		return 1;
	sessions = rte_cryptodev_sym_session_pool_create("sessions", 1024, bytes, 0, 0, SOCKET_ID);
	*operations = rte_crypto_op_pool_create("operations", RTE_CRYPTO_OP_TYPE_SYMMETRIC, 2048, 128,
						VHOST_CRYPTO_MAX_IV_LEN, SOCKET_ID);
	queue.mp_session = sessions;
	if (!sessions || !*operations || rte_cryptodev_queue_pair_setup(DEVICE, 0, &queue, SOCKET_ID))
		return 1;
	return rte_cryptodev_start(DEVICE);
}

// Opens the socket. The library says that it answers GET_CONFIG, and does not.
static int listen_at(const char *path)
{
	uint64_t features;

	if (rte_vhost_driver_register(path, 0) || rte_vhost_driver_callback_register(path, &connection)
	    || rte_vhost_crypto_driver_start(path) || rte_vhost_driver_get_protocol_features(path, &features))
		return 1;
	return rte_vhost_driver_set_protocol_features(path, features & ~(UINT64_C(1) << FEATURE_CONFIG));
}

// Serves what waits; returns how many were given back.
static unsigned serve(int vid, struct rte_mempool *operations)
{
	struct rte_crypto_op *taken[BURST], *done[BURST];
	int calls[VIRTIO_CRYPTO_MAX_NUM_BURST_VQS];
	uint16_t count, call_count = 0;

	if (rte_crypto_op_bulk_alloc(operations, RTE_CRYPTO_OP_TYPE_SYMMETRIC, taken, BURST) < BURST)
		return 0;
	count = rte_vhost_crypto_fetch_requests(vid, 0, taken, BURST);
	rte_mempool_put_bulk(operations, (void **)(taken + count), BURST - count);
	for (uint16_t put = 0; put < count;)
		put += rte_cryptodev_enqueue_burst(DEVICE, 0, taken + put, count - put);
	for (uint16_t back = 0; back < count;)
		back += rte_cryptodev_dequeue_burst(DEVICE, 0, done + back, count - back);
	if (count == 0)
		return 0;
	rte_vhost_crypto_finalize_requests(done, count, calls, &call_count);
	for (uint16_t at = 0; at < call_count; at++)
		eventfd_write(calls[at], 1);
	rte_mempool_put_bulk(operations, (void **)done, count);
	return count;
}

int main(int argc, char **argv)
{
	struct rte_mempool *operations;
	int used;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	used = rte_eal_init(argc, argv);
	if (used < 0 || used + 1 >= argc || prepare(&operations))
		return 1;
	if (listen_at(argv[used + 1]))
		return 2;
	puts("ready");
	fflush(stdout);
	for (;;) {
		unsigned count = 0;

		atomic_store(&busy, 1);
		int vid = atomic_load(&served);
		if (vid != NOBODY)
			count = serve(vid, operations);
		atomic_store(&busy, 0);
		if (count == 0)
			usleep(POLL_US);
	}
}
