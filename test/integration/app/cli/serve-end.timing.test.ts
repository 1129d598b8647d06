import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { evict, newStore, removeStores } from '../../../support/fleet.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll } from '../../../support/processes.js';
import { newFolder, removeFolders } from './run-support.js';
import { announced, announcedAt, serve } from './serve-support.js';

afterEach(async () => {
  await killAll();
  await stopProxies();
  await removeStores();
  removeFolders();
});

async function s3Proxy() {
  const { proxy, through } = await throughProxy(inject('s3').endpoint);
  return { proxy, store: await newStore('s3', through) };
}

/**
 * Clients that hold up a server that waits for them: one that follows the events, and one in the middle of a
 * request.
 */
async function hangOn(url: string): Promise<void> {
  const { body } = await fetch(`${url}/api/events`);
  void body
    ?.getReader()
    .read()
    .catch(() => undefined);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) =>
    socket.write('GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n', () => resolve()),
  );
}

describe('a sidecar whose lease is lost', () => {
  it.each(['evicted', 'out of reach'])(
    'ends in time whatever its clients and ZooKeeper do: %s',
    async (how) => {
      const { proxy: network, store } = await s3Proxy();
      const { proxy: zookeeper, options } = await announced();
      const file = join(newFolder(), 'ready.json');
      const sidecar = serve(store, '--duration', '3s', ...options, '--wait-file', file);
      const url = await announcedAt(sidecar);
      await hangOn(url);
      zookeeper.stall('both');
      if (how === 'evicted') await evict(store);
      else network.stall('both');
      await sidecar.waitForOutput(/"event":"lost"/);
      const lost = performance.now();
      expect((await sidecar.exit).code, sidecar.stderr()).toBe(76);
      // Waiting for each of them would take more than 2 seconds.
      expect(performance.now() - lost).toBeLessThan(2_000);
      expect(existsSync(file)).toBe(false);
    },
  );
});
