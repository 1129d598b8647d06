import type { LookupAddress } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, isIP, type LookupFunction } from 'node:net';
import { onAbort } from '../base/abort.js';
import type { Clock } from '../clock.js';
import type { CheckTarget } from '../config/health-check.js';
import { type NameResolver, sharedResolver } from '../zookeeper/name-resolver.js';

/** Asks once. Rejects with what was wrong, or with the signal's reason as soon as it aborts. */
export type HealthProbe = (signal: AbortSignal) => Promise<void>;

export interface HealthProbeOptions {
  readonly clock: Clock;
  /** Finds the target's addresses. @default the one that the process has for ZooKeeper's servers, too */
  readonly names?: NameResolver;
}

/** How much of a body is read. */
const MOST_BODY_BYTES = 65_536;
/** How long an address is waited for by a probe that nobody ends, in milliseconds. */
const LOOKUP_LIMIT_MS = 10_000;
/** Both of them, and no lookup: the command may listen on one only. */
const LOOPBACK: readonly string[] = ['127.0.0.1', '::1'];

/**
 * A way to ask a target: 2xx from a URL, with no redirect followed; a connection from a port.
 *
 * A certificate is not checked: the target is the command that runs beside, under a name such as 127.0.0.1 that no certificate has, and what
 * is asked is only whether it works. Proxies that the environment names are not used. However often it is asked, one lookup of the host's name
 * is under way at the most, and none for `localhost`: lookups that get no answer would keep the store's host from being looked up.
 */
export function healthProbe(target: CheckTarget, options: HealthProbeOptions): HealthProbe {
  if (target.kind === 'tcp') return (signal) => connectTo(target, lookupFor(options, signal), signal);
  const url = new URL(target.url);
  return (signal) => get(url, lookupFor(options, signal), signal);
}

/** The target for people, without the password that a URL may hold. */
export function describeTarget(target: CheckTarget): string {
  if (target.kind === 'tcp') return `tcp:${target.host.includes(':') ? `[${target.host}]` : target.host}:${target.port}`;
  const { origin, pathname } = new URL(target.url);
  return `${origin}${pathname}`;
}

function get(url: URL, lookup: LookupFunction, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : told(error));
    const headers = { 'user-agent': 'nodelease', accept: '*/*' };
    const options = { agent: false, signal, headers, lookup, autoSelectFamily: true };
    const request = url.protocol === 'https:' ? httpsRequest(url, { ...options, rejectUnauthorized: false }) : httpRequest(url, options);
    let isAnswered = false;
    request.on('error', fail);
    request.on('response', (response) => {
      isAnswered = true;
      judge(response, resolve, fail);
    });
    // Also after a change of protocols, and after an end without a word. A response says itself how it ends.
    request.on('close', () => {
      if (!isAnswered) fail(new Error('the connection ended without an answer'));
    });
    request.end();
  });
}

function judge(response: IncomingMessage, resolve: () => void, fail: (error: Error) => void): void {
  const { statusCode = 0 } = response;
  let bytes = 0;
  const settle = () => {
    if (statusCode >= 200 && statusCode <= 299) resolve();
    else fail(new Error(`it answers ${statusCode}`));
  };
  response.on('error', fail);
  response.on('end', settle);
  // Read to its end, so that a server has nothing to complain of; but not for ever.
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= MOST_BODY_BYTES) return;
    settle();
    response.destroy();
  });
}

function connectTo(
  { host, port }: { readonly host: string; readonly port: number },
  lookup: LookupFunction,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = connect({ host, port, lookup, autoSelectFamily: true });
    const abandon = () => socket.destroy(signal.reason instanceof Error ? signal.reason : undefined);
    const cancel = onAbort(signal, abandon);
    socket.on('close', () => {
      cancel();
      // Without an error, and without a connection: it was given up.
      reject(signal.reason);
    });
    socket.on('error', (error) => reject(signal.aborted ? signal.reason : told(error)));
    socket.on('connect', () => {
      resolve();
      socket.destroy();
    });
  });
}

/** Of several addresses that were tried there are several errors, in one that says nothing by itself. */
function told(error: Error): Error {
  if (!(error instanceof AggregateError)) return error;
  const problems = error.errors.map((each) => (each instanceof Error ? each.message : String(each)));
  return new Error(problems.join(', '), { cause: error.errors[0] });
}

/** A lookup for one probe, in the form that sockets ask for it. They do not ask for addresses. */
function lookupFor({ clock, names = sharedResolver }: HealthProbeOptions, signal: AbortSignal): LookupFunction {
  const find = async (host: string): Promise<LookupAddress[]> => {
    if (host.toLowerCase() === 'localhost') return LOOPBACK.map(withFamily);
    const resolution = await names.resolve(host, { clock, limitMs: LOOKUP_LIMIT_MS, signal });
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
