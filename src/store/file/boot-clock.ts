import { readFileSync, readlinkSync } from 'node:fs';
import { uptime as osUptime } from 'node:os';
import type { Clock, RandomSource } from '../../base/clock.js';

/** A clock that all processes of one running kernel share, and that no change of the wall clock moves. */
export interface BootClock {
  /** Times of clocks with the same id may be compared, others never. */
  readonly id: string;
  /** How coarse the times are, in milliseconds: each is the true time, cut to a step of this size. */
  readonly resolutionMs: number;
  /** Milliseconds since the kernel started, suspended time included. */
  now(): number;
}

/** Where {@link openBootClock} gets its facts from; each has the machine's own as its default. */
export interface BootClockSources {
  /** For the comparison with the uptime, see there. */
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Seconds since the kernel started. @default `os.uptime` */
  readonly uptime?: () => number;
  /** The text of a file of /proc, or undefined where it cannot be read. @default the file's own */
  readonly readText?: (path: string) => string | undefined;
  /** The target of a symbolic link of /proc, or undefined where it cannot be read. @default the link's own */
  readonly readLink?: (path: string) => string | undefined;
}

/** More than the step of the uptime and the time between two looks at a clock, less than any uptime that a container runtime makes up. */
const TOLERANCE_MS = 50;

/**
 * The boot clock of this machine: on Linux the uptime, which is CLOCK_BOOTTIME and thus the same in every process and container of the kernel,
 * named after the boot and the time namespace, which can shift it.
 *
 * Where the boot has no name (every other system) or the uptime is not the kernel's (some container runtimes show the
 * container's instead), the id is one that no other process has: then nobody compares times that cannot be compared.
 */
export function openBootClock(sources: BootClockSources): BootClock {
  const { clock, random, uptime = osUptime, readText = textOf, readLink = targetOf } = sources;
  const bootId = readText('/proc/sys/kernel/random/boot_id')?.trim();
  const namespace = readLink('/proc/self/ns/time') ?? 'no time namespaces';
  const precise = readText('/proc/uptime') !== undefined;
  // The monotonic clock stands still while the machine is suspended, the uptime does not: an honest one is never behind it.
  const elapsed = clock.monotonic();
  const honest = uptime() * 1000 >= elapsed - TOLERANCE_MS;
  const shared = bootId !== undefined && bootId !== '' && precise && honest;
  return {
    id: shared ? `${bootId} ${namespace}` : `process ${random.hex(12)}`,
    resolutionMs: precise ? 10 : 1000,
    now: () => Math.round(uptime() * 1000),
  };
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
