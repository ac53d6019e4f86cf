/*
 * The wall clock of a process, moved by what stands in a file: eight bytes, a signed count of microseconds.
 * Loaded with LD_PRELOAD. Whoever writes the file moves the clock of the running process.
 * The monotonic clock is left alone: that of a real machine does not jump either when someone sets the time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MICROS 1000000LL

_Static_assert(sizeof(time_t) == 8 && sizeof(long) == 8, "the plain system call must fill a 64-bit timespec");

/* Other libraries may ask for the time before `map_offset` has run: until then nothing is moved. */
static const int64_t zero = 0;
static const int64_t *offset_micros = &zero;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("MOVED_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    perror("moved-clock: the file named by MOVED_CLOCK_FILE cannot be mapped");
    abort();
  }
  close(file);
  offset_micros = page;
}

/* A plain system call: looking up libc's own function can allocate, and the allocator can ask for the time. */
static int real_time(clockid_t clock, struct timespec *time) {
  return (int)syscall(SYS_clock_gettime, clock, time);
}

static int moved_time(clockid_t clock, struct timespec *time) {
  int status = real_time(clock, time);
  if (status != 0) return status;
  int64_t offset = __atomic_load_n(offset_micros, __ATOMIC_RELAXED);
  int64_t nanos = time->tv_nsec + offset % MICROS * 1000;
  time->tv_sec += offset / MICROS;
  if (nanos < 0) time->tv_sec--, nanos += MICROS * 1000;
  if (nanos >= MICROS * 1000) time->tv_sec++, nanos -= MICROS * 1000;
  time->tv_nsec = nanos;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int is_wall_clock = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  return is_wall_clock ? moved_time(clock, time) : real_time(clock, time);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  int status = moved_time(CLOCK_REALTIME, &now);
  if (status != 0) return status;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (moved_time(CLOCK_REALTIME_COARSE, &now) != 0) return -1;
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
