// Leases in the key-value store of Consul, by its HTTP API: https://developer.hashicorp.com/consul/api-docs/txn

import { StoreError } from 'nodelease';
import { observedAge } from 'nodelease/store';

/**
 * Opens a store. Consul reports no time of writing, so ages are observed: keep what this returns for as long as the process waits for leases.
 *
 * @param {{ server: string, prefix: string, token?: string }} place
 * @returns {import('nodelease').LeaseStore}
 */
export function consulStore(place) {
  return observedAge(new ConsulStore(place));
}

/** The store does not report ages. */
const UNKNOWN_AGE = { min: 0, max: Number.POSITIVE_INFINITY };
/** The refusals: with any other failure a write may have been applied. */
const NOT_APPLIED = { 400: 'rejected', 403: 'denied', 413: 'rejected', 429: 'unavailable' };

class ConsulStore {
  remote = true;
  timeStepMs = 1_000;
  #place;

  constructor(place) {
    this.url = `consul://${new URL(place.server).host}/${place.prefix}`;
    this.#place = place;
  }

  async read(key, options) {
    const { status, body, storeTime } = await this.#send('GET', `kv/${this.#path(key)}?consistent`, options);
    if (status === 404) return undefined;
    const [row] = body;
    return { key, ...contentOf(row), etag: String(row.ModifyIndex), age: UNKNOWN_AGE, storeTime };
  }

  async list(options) {
    const { status, body, storeTime } = await this.#send(
      'GET',
      `kv/${this.#path('')}?recurse&consistent`,
      options,
    );
    const rows = status === 404 ? [] : body;
    const objects = rows.map((row) => ({
      key: row.Key.slice(this.#place.prefix.length + 1),
      etag: String(row.ModifyIndex),
      size: Buffer.byteLength(contentOf(row).body),
      age: UNKNOWN_AGE,
    }));
    // Deeper keys belong to other stores, such as those of locks.
    return { objects: objects.filter(({ key }) => !key.includes('/')), storeTime };
  }

  /** To Consul, an index of 0 means that there is no such key. */
  create(key, body, metadata, options) {
    return this.#write(key, body, metadata, 0, options);
  }

  replace(key, body, metadata, etag, options) {
    // No key has such an etag: 0 would create it.
    if (!/^[1-9]\d*$/.test(etag)) return this.#staleEtag(options);
    return this.#write(key, body, metadata, Number(etag), options);
  }

  async discardProbe(key, options) {
    if (!key.startsWith('probe-')) {
      throw new StoreError(`${this.url}: ${key} is not a scratch object of a probe`, {
        fault: 'rejected',
        outcome: 'not-applied',
      });
    }
    await this.#send('DELETE', `kv/${this.#path(key)}`, options);
  }

  async close() {}

  async #write(key, body, metadata, index, options) {
    const value = Buffer.from(JSON.stringify({ metadata, body })).toString('base64');
    // A transaction, since its reply has the new index.
    const change = { Verb: 'cas', Key: `${this.#place.prefix}/${key}`, Value: value, Index: index };
    const { status, body: reply, storeTime } = await this.#send('PUT', 'txn', options, [{ KV: change }]);
    if (status === 409 && reply?.Errors) return { status: 'conflict' };
    const written = reply?.Results?.[0]?.KV?.ModifyIndex;
    if (written) return { status: 'written', etag: String(written), storeTime };
    throw new StoreError(`${this.url}: not as Consul answers`, { fault: 'rejected', outcome: 'unknown' });
  }

  async #staleEtag({ signal } = {}) {
    signal?.throwIfAborted();
    return { status: 'conflict' };
  }

  #path(key) {
    return encodeURI(`${this.#place.prefix}/${key}`);
  }

  /** One request, which is never repeated: the engine reads back what became of a write. */
  async #send(method, path, { signal } = {}, content = undefined) {
    const { server, token } = this.#place;
    const headers = token && { 'x-consul-token': token };
    let reply;
    try {
      reply = await fetch(`${server}/v1/${path}`, { method, signal, headers, body: JSON.stringify(content) });
      const text = await reply.text();
      // Those of Consul that are no failures. A proxy says 404, too, and what it says with 200 is no JSON.
      const isAbsent = reply.status === 404 && reply.headers.has('x-consul-index');
      const isAnswer = reply.ok || reply.status === 409 || isAbsent;
      if (isAnswer) {
        const body = isAbsent ? undefined : JSON.parse(text);
        return { status: reply.status, body, storeTime: timeOf(reply.headers.get('date')) };
      }
    } catch (cause) {
      const message = `${this.url}: ${cause.cause?.message ?? cause.message}`;
      throw new StoreError(message, { fault: 'unreachable', outcome: 'unknown', cause });
    }
    const fault = NOT_APPLIED[reply.status];
    throw new StoreError(`${this.url}: HTTP ${reply.status}`, {
      fault: fault ?? 'unavailable',
      outcome: fault ? 'not-applied' : 'unknown',
    });
  }
}

function contentOf({ Value }) {
  return JSON.parse(Buffer.from(Value, 'base64').toString());
}

/** `Date` is cut to whole seconds. */
function timeOf(date) {
  const min = Date.parse(date);
  return { min, max: min + 1_000 };
}
