import type { LookupAddress } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, isIP, type LookupFunction } from 'node:net';
import { onAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import type { CheckTarget } from '../../settings/check-target.js';
import { type NameResolver, sharedResolver } from '../../zookeeper/name-resolver.js';

/** Probes once. Rejects with the problem, or with the signal's reason as soon as that aborts. */
export type HealthProbe = (signal: AbortSignal) => Promise<void>;

export interface HealthProbeOptions {
  readonly clock: Clock;
  /** Finds the target's addresses. @default the resolver for ZooKeeper's servers */
  readonly names?: NameResolver;
}

/** How much of a body is read. */
const MAX_BODY_BYTES = 65_536;
/** How long the lookup of a name may take, in milliseconds. A probe ends sooner. */
const LOOKUP_TIMEOUT_MS = 10_000;
/** The addresses of localhost: the command may listen on one of them only. */
const LOOPBACK: readonly string[] = ['127.0.0.1', '::1'];

/**
 * A probe of a target, the command that runs beside: a URL answers 2xx, without redirects and proxies; a port takes a connection. Certificates are
 * not verified: no certificate has a name such as 127.0.0.1. At most one lookup of the host's name is under way, and none for `localhost`: lookups
 * without an answer would delay that of the store's host.
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

async function get(url: URL, lookup: LookupFunction, signal: AbortSignal): Promise<void> {
  const { status } = await httpGet(url, { signal, lookup, userAgent: 'nodelease' });
  if (status < 200 || status > 299) throw new Error(`it answers ${status}`);
}

/** The answer of a server. */
export interface HttpReply {
  readonly status: number;
  /** The first 64 KiB or so. */
  readonly body: string;
}

/**
 * Requests a URL on this host, by a connection of its own, without redirects, proxies, and the verification of certificates.
 *
 * @throws what went wrong, or `signal.reason`
 */
export function httpGet(
  url: URL,
  { signal, lookup, userAgent }: { readonly signal: AbortSignal; readonly lookup?: LookupFunction; readonly userAgent: string },
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : told(error));
    const headers = { 'user-agent': userAgent, accept: '*/*' };
    // A name may have several addresses, and the server listen on one of them.
    const options = { agent: false, signal, headers, autoSelectFamily: true, ...(lookup && { lookup }) };
    const request = url.protocol === 'https:' ? httpsRequest(url, { ...options, rejectUnauthorized: false }) : httpRequest(url, options);
    let isAnswered = false;
    request.on('error', fail);
    request.on('response', (response) => {
      isAnswered = true;
      read(response, resolve, fail);
    });
    // Also after a change of protocols. A response reports its end itself.
    request.on('close', () => {
      if (!isAnswered) fail(new Error('the connection ended without an answer'));
    });
    request.end();
  });
}

/** Reads a body to its end, so that the server does not fail, but not without limit. */
function read(response: IncomingMessage, resolve: (reply: HttpReply) => void, fail: (error: Error) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const settle = () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') });
  response.on('error', fail);
  response.on('end', settle);
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) return;
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
      // Without an error and a connection, it was given up.
      reject(signal.reason);
    });
    socket.on('error', (error) => reject(signal.aborted ? signal.reason : told(error)));
    socket.on('connect', () => {
      resolve();
      socket.destroy();
    });
  });
}

/** The error of a host with several addresses says nothing by itself: the texts of all. */
function told(error: Error): Error {
  if (!(error instanceof AggregateError)) return error;
  const problems = error.errors.map((each) => (each instanceof Error ? each.message : String(each)));
  return new Error(problems.join(', '), { cause: error.errors[0] });
}

/** A lookup for one probe. Sockets call it with names only, not with addresses. */
function lookupFor({ clock, names = sharedResolver }: HealthProbeOptions, signal: AbortSignal): LookupFunction {
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
