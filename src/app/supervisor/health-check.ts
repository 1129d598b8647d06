import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { connect, isIP, type LookupFunction } from 'node:net';
import { callWithTimeout, onAbort } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { httpCall, ofAllAddresses } from '../../core/base/http-call.js';
import {
  type CheckTarget,
  formatListenAddress,
  type ListenAddress,
} from '../../core/settings/listen-address.js';
import { type NameResolver, sharedResolver } from '../../zookeeper/client/connection/name-resolver.js';

/** Probes once. Rejects with the problem, or with the signal's reason as soon as that aborts. */
type HealthProbe = (signal: AbortSignal) => Promise<void>;

/** The health of a command, reported when it changes. */
export type HealthVerdict =
  | { readonly healthy: true }
  /** `failures` in a row; `problem` is the last one. */
  | { readonly healthy: false; readonly failures: number; readonly problem: unknown };

interface HealthCheckOptions {
  readonly probe: HealthProbe;
  readonly clock: Clock;
  /**
   * From the beginning of one probe to that of the next, and the time-out of a probe, in milliseconds. A
   * probe takes 5 s at the most.
   */
  readonly intervalMs: number;
  /** How many failures in a row make it unhealthy, and how many good answers healthy again. */
  readonly threshold: number;
  /** Called with every change, first with the first good answer. */
  readonly onChange: (verdict: HealthVerdict) => void;
  /** Called once, when the first probe of all fails. */
  readonly onWaiting: (problem: unknown) => void;
}

/** The maximum time of a probe, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

/**
 * Probes a command again and again, one probe at a time. The first good answer makes it healthy. Afterwards
 * each change needs `threshold` probes in a row. Resolves once `signal` has aborted, and a probe under way
 * has been given up; no listener is called from then on.
 */
export async function checkHealth(options: HealthCheckOptions, signal: AbortSignal): Promise<void> {
  const { probe, clock, intervalMs, threshold, onChange, onWaiting } = options;
  const limit = { clock, timeoutMs: Math.min(intervalMs, PROBE_TIMEOUT_MS), signal };
  let healthy: boolean | undefined;
  let streak = 0;
  while (!signal.aborted) {
    const begun = clock.monotonic();
    const problem = await callWithTimeout(limit, probe).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (signal.aborted) return;
    const good = problem === undefined;
    streak = good === healthy ? 0 : streak + 1;
    if (healthy === undefined && !good && streak === 1) onWaiting(problem.error);
    const isChange = healthy === undefined ? good : streak >= threshold;
    if (isChange) {
      onChange(good ? { healthy: true } : { healthy: false, failures: streak, problem: problem.error });
      healthy = good;
      streak = 0;
    }
    await clock.sleep(Math.max(0, begun + intervalMs - clock.monotonic()), signal).catch(() => undefined);
  }
}

/** How long the lookup of a name may take, in milliseconds. A probe ends sooner. */
const LOOKUP_TIMEOUT_MS = 10_000;
/** The addresses of localhost: the command may listen on one of them only. */
const LOOPBACK: readonly string[] = ['127.0.0.1', '::1'];

/**
 * A probe of a target, the command that runs here: a URL answers 2xx, without redirects and proxies; a port
 * takes a connection. Certificates are not verified: no certificate has a name such as 127.0.0.1. At most one
 * lookup of the host's name is under way, and none for `localhost`: lookups without an answer would delay
 * that of the store's host.
 *
 * @param names finds the target's addresses. @default the resolver for ZooKeeper's servers
 */
export function healthProbe(target: CheckTarget, clock: Clock, names = sharedResolver): HealthProbe {
  if (target.kind === 'tcp') return (signal) => connectTo(target, lookupFor(names, clock, signal), signal);
  return async (signal) => {
    const { status } = await httpCall(new URL(target.url), {
      signal,
      lookup: lookupFor(names, clock, signal),
      userAgent: 'nodelease',
    });
    if (status < 200 || status > 299) throw new Error(`it answers ${status}`);
  };
}

/** The target for people, without the password that a URL may hold. */
export function describeTarget(target: CheckTarget): string {
  if (target.kind === 'tcp') return `tcp:${formatListenAddress(target)}`;
  const { origin, pathname } = new URL(target.url);
  return `${origin}${pathname}`;
}

async function connectTo(to: ListenAddress, lookup: LookupFunction, signal: AbortSignal) {
  signal.throwIfAborted();
  const socket = connect({ ...to, lookup, autoSelectFamily: true });
  const cancel = onAbort(signal, () => socket.destroy(new Error('given up')));
  try {
    await once(socket, 'connect');
  } catch (error) {
    throw signal.aborted ? signal.reason : ofAllAddresses(error);
  } finally {
    cancel();
    socket.destroy();
  }
}

/** A lookup for one probe. Sockets call it with names only, not with addresses. */
function lookupFor(names: NameResolver, clock: Clock, signal: AbortSignal): LookupFunction {
  const find = async (host: string): Promise<LookupAddress[]> => {
    if (host.toLowerCase() === 'localhost') return LOOPBACK.map(withFamily);
    const resolution = await names.resolve(host, { clock, limitMs: LOOKUP_TIMEOUT_MS, signal });
    if (resolution.status === 'failed') throw new Error(`${host}: ${resolution.problem}`);
    return resolution.addresses.map(withFamily);
  };
  return (host, { all }, callback) => {
    find(host).then(
      (addresses) => {
        const [first] = addresses;
        if (all || first === undefined) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, []),
    );
  };
}

function withFamily(address: string): LookupAddress {
  return { address, family: isIP(address) };
}
