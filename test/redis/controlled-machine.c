/*
 * Loaded with LD_PRELOAD into a server: moves its wall clock, makes its syncs slow, and logs how much of each file was synced.
 * MOVED_CLOCK_FILE and SLOW_SYNC_FILE each hold eight bytes, a signed count of microseconds; writing one changes the running process.
 * The monotonic clock is left alone: that of a real machine does not jump either when someone sets the time.
 * SYNC_LOG gets one line for each file that was synced or cut:
 *   sync|cut <inode> <birth, ns> <bytes>
 * A sync's bytes are those the file had when the sync began: what was written meanwhile may not be on the disk.
 * A file is named by its inode and birth, since it may be renamed later, and a new file may get an old inode.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MICROS 1000000LL

_Static_assert(sizeof(time_t) == 8 && sizeof(long) == 8, "the plain system call must fill a 64-bit timespec");
_Static_assert(sizeof(off_t) == 8, "the plain system calls take 64-bit lengths");

/* Other libraries may ask for the time before `open_files` has run: until then nothing is moved. */
static const int64_t zero = 0;
static const int64_t *offset_micros = &zero;
static const int64_t *delay_micros = &zero;
static int log_file = -1;

static void give_up(const char *what) {
  perror(what);
  abort();
}

static const int64_t *number_in(const char *variable) {
  const char *path = getenv(variable);
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) give_up(variable);
  close(file);
  return page;
}

__attribute__((constructor)) static void open_files(void) {
  const char *log_path = getenv("SYNC_LOG");
  log_file = log_path ? open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
  if (log_file < 0) give_up("SYNC_LOG");
  offset_micros = number_in("MOVED_CLOCK_FILE");
  delay_micros = number_in("SLOW_SYNC_FILE");
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

/* A server may close files it does not know, all above a number for example: the log is then closed too, and that must show. */
static void write_down(const char *what, const struct statx *file, uint64_t bytes) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %llu %lld %llu\n", what,
                        (unsigned long long)file->stx_ino,
                        (long long)file->stx_btime.tv_sec * MICROS * 1000 + file->stx_btime.tv_nsec,
                        (unsigned long long)bytes);
  if (write(log_file, line, length) != length) give_up("SYNC_LOG");
}

static int look_at(int directory, const char *path, int flags, struct statx *file) {
  int mask = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_BTIME;
  return statx(directory, path, flags, mask, file) == 0 && S_ISREG(file->stx_mode);
}

static int sync_and_write_down(long call, int descriptor) {
  struct statx before;
  int is_file = look_at(descriptor, "", AT_EMPTY_PATH, &before);
  int64_t wait = __atomic_load_n(delay_micros, __ATOMIC_RELAXED);
  struct timespec rest = {wait / MICROS, wait % MICROS * 1000};
  while (wait > 0 && nanosleep(&rest, &rest) != 0 && errno == EINTR) continue;
  int status = (int)syscall(call, descriptor);
  if (status == 0 && is_file) write_down("sync", &before, before.stx_size);
  return status;
}

int fsync(int descriptor) { return sync_and_write_down(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return sync_and_write_down(SYS_fdatasync, descriptor); }

/* Bytes that are written again behind a cut are not those that were synced before it. */
static int ftruncate_and_write_down(int descriptor, off_t length) {
  struct statx file;
  int status = (int)syscall(SYS_ftruncate, descriptor, length);
  if (status == 0 && look_at(descriptor, "", AT_EMPTY_PATH, &file)) write_down("cut", &file, length);
  return status;
}

static int truncate_and_write_down(const char *path, off_t length) {
  struct statx file;
  int status = (int)syscall(SYS_truncate, path, length);
  if (status == 0 && look_at(AT_FDCWD, path, 0, &file)) write_down("cut", &file, length);
  return status;
}

int ftruncate(int descriptor, off_t length) { return ftruncate_and_write_down(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) { return ftruncate_and_write_down(descriptor, length); }
int truncate(const char *path, off_t length) { return truncate_and_write_down(path, length); }
int truncate64(const char *path, off64_t length) { return truncate_and_write_down(path, length); }
