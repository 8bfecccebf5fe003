/* Joins network namespaces by emulated links: a TUN device a site, packets that wait for the rate
 * of each link on their path and then fly for its latency. Standard input has words:
 *
 *   SITES LINKS TUNED
 *   rate_bits_per_s latency_s queue_bytes                        for each link
 *   number_of_links link link ...                                for each pair of sites, row by row
 *
 * It prints a line with the file descriptor of each namespace, and ends with its standard input.
 * A packet that finds more than queue_bytes before it is dropped. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SITES = 200, MOST_LINKS = 4096, MOST_HOPS = 16, MTU = 1500 };

struct packet {
    struct packet *next;
    double arrival_s;
    int length, source, target, hop;
    unsigned char bytes[MTU];
};
struct link {
    double bytes_per_s, latency_s, queue_bytes, free_s;
    struct packet *first, *last;
};

static struct link links[MOST_LINKS];
static int paths[MOST_SITES][MOST_SITES][MOST_HOPS + 1], tuns[MOST_SITES], num_sites, num_links;

static void fail(const char *what) {
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void set_kernel(const char *name, const char *value) {
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/%s", name);
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, value, strlen(value)) < 0) fail(path);
    close(file);
}

static void set_address(int file, struct ifreq *request, unsigned long what, const char *address) {
    struct sockaddr_in *own = (struct sockaddr_in *)&request->ifr_addr;
    memset(own, 0, sizeof *own);
    own->sin_family = AF_INET;
    inet_pton(AF_INET, address, &own->sin_addr);
    if (ioctl(file, what, request)) fail("address of a device");
}

static void bring_up(int file, struct ifreq *request) {
    request->ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(file, SIOCSIFFLAGS, request)) fail("device up");
}

static int add_site(int site, int is_tuned) {
    if (unshare(CLONE_NEWNET)) fail("network namespace");
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_name = "wan0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    if (ioctl(tun, TUNSETIFF, &request)) fail("TUN device");
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    char address[32];
    snprintf(address, sizeof address, "10.77.0.%d", site + 1);
    set_address(file, &request, SIOCSIFADDR, address);
    set_address(file, &request, SIOCSIFNETMASK, "255.255.255.0");
    request.ifr_qlen = 10000;
    if (ioctl(file, SIOCSIFTXQLEN, &request)) fail("queue of a device");
    bring_up(file, &request);
    struct ifreq local = {.ifr_name = "lo"};
    bring_up(file, &local);
    close(file);
    if (is_tuned) {
        set_kernel("tcp_slow_start_after_idle", "0");
        set_kernel("tcp_wmem", "4096 1048576 67108864");
        set_kernel("tcp_rmem", "4096 1048576 67108864");
    }
    tuns[site] = tun;
    return open("/proc/self/ns/net", O_RDONLY);
}

static void enqueue(struct packet *one, double now) {
    struct link *link = &links[paths[one->source][one->target][1 + one->hop]];
    double start = link->free_s > now ? link->free_s : now;
    if ((start - now) * link->bytes_per_s > link->queue_bytes) {
        free(one);
        return;
    }
    link->free_s = start + one->length / link->bytes_per_s;
    one->arrival_s = link->free_s + link->latency_s;
    one->next = NULL;
    if (link->first) link->last->next = one;
    else link->first = one;
    link->last = one;
}

static void read_packets(int site, double now) {
    for (int count = 0; count < 64; count++) {
        struct packet *one = malloc(sizeof *one);
        one->length = read(tuns[site], one->bytes, MTU);
        int target = one->length < 20 || one->bytes[0] >> 4 != 4 ? -1 : one->bytes[19] - 1;
        int is_end = one->length <= 0;
        one->source = site, one->target = target, one->hop = 0;
        int is_known = target >= 0 && target < num_sites && one->bytes[18] == 0;
        if (is_known && paths[site][target][0] > 0) enqueue(one, now);
        else free(one);
        if (is_end) return;
    }
}

/* Hands on what has arrived; returns when the next packet arrives. */
static double deliver(double now) {
    double next = now + 1.0;
    for (int number = 0; number < num_links; number++) {
        struct link *link = &links[number];
        while (link->first && link->first->arrival_s <= now) {
            struct packet *one = link->first;
            link->first = one->next;
            if (++one->hop < paths[one->source][one->target][0]) {
                enqueue(one, one->arrival_s);
                continue;
            }
            if (write(tuns[one->target], one->bytes, one->length) < 0 && errno != EAGAIN)
                fail("packet to a site");
            free(one);
        }
        if (link->first && link->first->arrival_s < next) next = link->first->arrival_s;
    }
    return next;
}

static double number(void) {
    double found;
    if (scanf("%lf", &found) != 1) fail("standard input must have the words of a network");
    return found;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    num_sites = number(), num_links = number();
    int is_tuned = number(), spaces[MOST_SITES];
    if (num_sites > MOST_SITES || num_links > MOST_LINKS) return errno = E2BIG, fail("sites"), 1;
    for (int link = 0; link < num_links; link++)
        links[link].bytes_per_s = number() / 8, links[link].latency_s = number(),
        links[link].queue_bytes = number();
    for (int pair = 0; pair < num_sites * num_sites; pair++) {
        int *path = paths[pair / num_sites][pair % num_sites];
        path[0] = number();
        if (path[0] > MOST_HOPS) return errno = E2BIG, fail("links of a path"), 1;
        for (int hop = 1; hop <= path[0]; hop++) path[hop] = number();
    }
    for (int site = 0; site < num_sites; site++) spaces[site] = add_site(site, is_tuned);
    for (int site = 0; site < num_sites; site++) printf("%d ", spaces[site]);
    printf("\n");
    fflush(stdout);
    struct pollfd files[MOST_SITES + 1] = {[0] = {.fd = 0, .events = POLLIN}};
    for (int site = 0; site < num_sites; site++)
        files[site + 1] = (struct pollfd){.fd = tuns[site], .events = POLLIN};
    for (;;) {
        double wait = deliver(now_s()) - now_s();
        if (wait < 0) wait = 0;
        struct timespec time = {.tv_sec = wait, .tv_nsec = 1e9 * (wait - (long)wait)};
        if (ppoll(files, num_sites + 1, &time, NULL) < 0) fail("poll");
        char byte;
        if (files[0].revents && read(0, &byte, 1) <= 0) return 0;
        for (int site = 0; site < num_sites; site++)
            if (files[site + 1].revents) read_packets(site, now_s());
    }
}
