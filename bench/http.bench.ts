import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { NodeMonitor, startNodeServer } from '../src/app/http/index.js';
import { systemClock } from '../src/core/base/system.js';
import { staticLease } from '../src/core/lease/hold/static-lease.js';
import { median, report } from './report.js';

const ROUNDS = 9;
const ROUND_MS = 500;
const CONNECTIONS = 16;
/**
 * The whole of routing, health, and what protects the server may cost so many times what Node itself does.
 */
const BOUND = 3;

/**
 * Asks one request after the other on each of its connections, in a thread of its own, and counts the
 * answers.
 */
const CLIENT = `
const { connect } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
parentPort.on('message', ({ port, ms }) => {
  let answers = 0;
  const request = 'GET /readyz HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n';
  const sockets = Array.from({ length: workerData }, () => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('connect', () => socket.write(request));
    socket.on('data', (data) => {
      if (data.toString('latin1', 0, 13) !== 'HTTP/1.1 200 ') throw new Error(data.toString());
      answers += 1;
      socket.write(request);
    });
    return socket;
  });
  setTimeout(() => {
    for (const socket of sockets) socket.destroy();
    parentPort.postMessage(answers);
  }, ms);
});`;

async function answersPerSecond(client: Worker, port: number): Promise<number> {
  client.postMessage({ port, ms: ROUND_MS });
  const [answers] = (await once(client, 'message')) as [number];
  return (answers * 1_000) / ROUND_MS;
}

function bareServer(body: string): Server {
  const head = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  };
  return createServer((_, response) => {
    response.writeHead(200, head);
    response.end(body);
  });
}

it('answers to /readyz a second, against a bare server of node:http that sends the same', async () => {
  const monitor = new NodeMonitor();
  monitor.hold(staticLease({ id: 3, taskId: 'bench' }));
  const node = await startNodeServer({ listen: { host: '127.0.0.1', port: 0 }, monitor, clock: systemClock });
  const body = await (await fetch(`${node.url}/readyz`)).text();
  const bare = bareServer(body).listen(0, '127.0.0.1');
  await once(bare, 'listening');
  const client = new Worker(CLIENT, { eval: true, workerData: CONNECTIONS });
  try {
    const ports = { bare: (bare.address() as AddressInfo).port, node: node.address.port };
    const rates = { bare: [] as number[], node: [] as number[] };
    for (const port of Object.values(ports)) await answersPerSecond(client, port);
    // In turns, so that whatever else the machine does falls on both.
    for (let round = 0; round < ROUNDS; round += 1) {
      rates.bare.push(await answersPerSecond(client, ports.bare));
      rates.node.push(await answersPerSecond(client, ports.node));
    }
    const ratio = median(rates.bare) / median(rates.node);
    const reported = (rate: number) => `${Math.round(rate).toLocaleString('en')} a second`;
    report(`Health checks over HTTP, ${CONNECTIONS} connections, median of ${ROUNDS} rounds in turns`, [
      ['a bare server of node:http', reported(median(rates.bare)), '1.00'],
      ['/readyz of a node', reported(median(rates.node)), ratio.toFixed(2)],
      ['bound', '', BOUND.toFixed(2)],
    ]);
    expect(ratio).toBeLessThanOrEqual(BOUND);
  } finally {
    await client.terminate();
    bare.closeAllConnections();
    bare.close();
    await node.close();
  }
});
