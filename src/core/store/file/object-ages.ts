import { readFileSync, readlinkSync } from 'node:fs';
import { uptime as osUptime } from 'node:os';
import type { Clock, RandomSource } from '../../base/clock.js';
import type { Interval } from '../lease-store.js';
import { ObservedAges } from '../observed-age.js';

/** A clock that all processes of one running kernel share, and that no change of the wall clock moves. */
export interface BootClock {
  /** Times of clocks with the same id may be compared, others never. */
  readonly id: string;
  /** How coarse the times are, in milliseconds: each is the true time, cut to a step of this size. */
  readonly resolutionMs: number;
  /** Milliseconds since the kernel started, suspended time included. */
  now(): number;
}

/** Where {@link openBootClock} gets its facts from; the machine itself by default. */
interface BootClockSources {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Seconds since the kernel started. */
  readonly uptime?: () => number;
  /** The text of a file of /proc, or undefined where it cannot be read. */
  readonly readText?: (path: string) => string | undefined;
  /** The target of a symbolic link of /proc, or undefined where it cannot be read. */
  readonly readLink?: (path: string) => string | undefined;
}

/**
 * More than the uptime's step and the time between two readings, less than an uptime that a container runtime
 * makes up.
 */
const TOLERANCE_MS = 50;

/**
 * The boot clock of this machine: on Linux the uptime, which is CLOCK_BOOTTIME and thus the same in every
 * process and container of the kernel, named after the boot and the time namespace, which can shift it.
 *
 * Where the boot has no name (every other system), or the uptime is not the kernel's (some container runtimes
 * show the container's instead), the id is one that no other process has: then no process compares times that
 * cannot be compared.
 */
export function openBootClock(sources: BootClockSources): BootClock {
  const { clock, random, uptime = osUptime, readText = textOf, readLink = targetOf } = sources;
  const bootId = readText('/proc/sys/kernel/random/boot_id')?.trim();
  const namespace = readLink('/proc/self/ns/time') ?? 'no time namespaces';
  const precise = readText('/proc/uptime') !== undefined;
  // The monotonic clock stops while the machine is suspended, the uptime does not: an honest one is
  // never behind it.
  const elapsed = clock.monotonic();
  const honest = uptime() * 1000 >= elapsed - TOLERANCE_MS;
  const shared = bootId !== undefined && bootId !== '' && precise && honest;
  return {
    id: shared ? `${bootId} ${namespace}` : `process ${random.hex(12)}`,
    resolutionMs: precise ? 10 : 1000,
    now: () => Math.round(uptime() * 1000),
  };
}

const textOf = (path: string) => orUndefined(() => readFileSync(path, 'utf8'));
const targetOf = (path: string) => orUndefined(() => readlinkSync(path));

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** A time on a boot clock. */
export interface Stamp {
  /** Which clock, see {@link BootClock.id}. */
  readonly clock: string;
  /** Milliseconds on it. */
  readonly ms: number;
}

/**
 * How old objects are. A stamp of this machine's boot clock shows it. Without one (written in another boot
 * or by hand), all that is certain is how long this process itself has seen the object unchanged.
 */
export class ObjectAges {
  readonly #observed = new ObservedAges();

  constructor(
    private readonly boot: BootClock,
    private readonly clock: Clock,
  ) {}

  /** A stamp for a write that begins now. */
  stamp(): Stamp {
    return { clock: this.boot.id, ms: this.boot.now() };
  }

  /**
   * The age of an object's state, in milliseconds.
   *
   * @param stamp when the state was written; undefined when that is not known
   * @param lookedAt `Clock.monotonic()` before the object was looked at
   */
  of(key: string, etag: string, stamp: Stamp | undefined, lookedAt: number): Interval {
    if (stamp?.clock === this.boot.id) {
      this.#observed.forget(key);
      // Both times are cut to the clock's step, so the difference is off by less than one step either way.
      const age = this.boot.now() - stamp.ms;
      return {
        min: Math.max(0, age - this.boot.resolutionMs),
        max: Math.max(0, age) + this.boot.resolutionMs,
      };
    }
    const min = this.#observed.of(key, etag, lookedAt, this.clock.monotonic());
    return { min, max: Number.POSITIVE_INFINITY };
  }
}
