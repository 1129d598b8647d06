import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { CheckTarget } from '../config/health-check.js';

/** Asks once. Rejects with what was wrong, or with the signal's reason as soon as it aborts. */
export type HealthProbe = (signal: AbortSignal) => Promise<void>;

/** How much of a body is read. */
const MOST_BODY_BYTES = 65_536;

/**
 * A way to ask a target: 2xx from a URL, with no redirect followed; a connection from a port.
 *
 * A certificate is not checked: the target is the command that runs beside, under a name such as 127.0.0.1 that no certificate has, and what
 * is asked is only whether it works. Proxies that the environment names are not used.
 */
export function healthProbe(target: CheckTarget): HealthProbe {
  if (target.kind === 'tcp') return (signal) => connectTo(target, signal);
  return (signal) => get(new URL(target.url), signal);
}

/** The target for people, without the password that a URL may hold. */
export function describeTarget(target: CheckTarget): string {
  if (target.kind === 'tcp') return `tcp:${target.host.includes(':') ? `[${target.host}]` : target.host}:${target.port}`;
  const { origin, pathname } = new URL(target.url);
  return `${origin}${pathname}`;
}

function get(url: URL, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { agent: false, signal, headers: { 'user-agent': 'nodelease', accept: '*/*' } };
    const ask =
      url.protocol === 'https:' ? () => httpsRequest(url, { ...options, rejectUnauthorized: false }) : () => httpRequest(url, options);
    const request = ask();
    request.on('error', (error) => reject(signal.aborted ? signal.reason : error));
    request.on('response', (response) => {
      const { statusCode = 0 } = response;
      let bytes = 0;
      const judge = () => {
        if (statusCode >= 200 && statusCode <= 299) resolve();
        else reject(new Error(`it answers ${statusCode}`));
      };
      response.on('error', (error) => reject(signal.aborted ? signal.reason : error));
      response.on('end', judge);
      // Read to its end, so that a server has nothing to complain of; but not for ever.
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= MOST_BODY_BYTES) return;
        judge();
        response.destroy();
      });
    });
    request.end();
  });
}

function connectTo({ host, port }: { readonly host: string; readonly port: number }, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = connect({ host, port, autoSelectFamily: true });
    const abandon = () => socket.destroy(signal.reason instanceof Error ? signal.reason : undefined);
    signal.addEventListener('abort', abandon, { once: true });
    socket.on('close', () => {
      signal.removeEventListener('abort', abandon);
      // Without an error, and without a connection: it was given up.
      reject(signal.reason);
    });
    socket.on('error', (error) => reject(signal.aborted ? signal.reason : error));
    socket.on('connect', () => {
      resolve();
      socket.destroy();
    });
  });
}
