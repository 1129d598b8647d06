import { expect, it } from 'vitest';
import { systemClock as clock } from '../../base/system.js';
import type { HttpRequest } from '../http-client.js';
import { GcsLeaseStore } from './gcs-lease-store.js';

/** A store whose server knows one token, and whose source of tokens gives `old` until that was refused. */
function scene(known: string) {
  const sent: (string | undefined)[] = [];
  const send = async (_: string, { headers }: HttpRequest) => {
    sent.push(headers?.authorization);
    const isKnown = headers?.authorization === known;
    return { status: isKnown ? 200 : 401, headers: {}, body: '{"generation":"7"}' };
  };
  const authorize = async (isRefused: boolean) => ({ authorization: isRefused ? 'new' : 'old' });
  const client = { send, close: () => undefined };
  const options = { bucket: 'leases', prefix: 'p', clock, requestTimeoutMs: 5_000 };
  return { sent, store: new GcsLeaseStore({ ...options, client, authorize }) };
}

it('a token that is refused is replaced by a new one, in the same call', async () => {
  const { sent, store } = scene('new');
  expect(await store.create('0.json', 'x', {})).toMatchObject({ status: 'written', etag: '7' });
  expect(sent).toEqual(['old', 'new']);
});

it('a new token that is refused as well fails the call', async () => {
  const { sent, store } = scene('another');
  const refused = { fault: 'denied', outcome: 'not-applied' };
  await expect(store.create('0.json', 'x', {})).rejects.toMatchObject(refused);
  expect(sent).toEqual(['old', 'new']);
});
