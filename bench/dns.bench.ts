import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { encode } from 'dns-packet';
import { afterAll, expect, inject, it } from 'vitest';
import { listening, outcome, register } from '../test/integration/app/dns/dns-support.js';
import { client, closeClients } from '../test/integration/zookeeper/discovery/discovery-support.js';
import { killAll, runCli, runProcess } from '../test/support/processes.js';
import { uniqueChroot } from '../test/support/zookeeper.js';
import { inTurns, medianRatio } from './comparison.js';
import { median, report } from './report.js';

const ROUNDS = { counted: 9, warmUp: 2 };
const ROUND_MS = 1_000;
/** Questions under way at once. */
const WINDOW = 64;
/** As many answers a second as this share of what a process can take and send. */
const BOUND = 0.5;

/** A thread that sends a question for each answer, and further ones when answers were lost. */
const CLIENT = `
const { createSocket } = require('node:dgram');
const { parentPort, workerData } = require('node:worker_threads');
parentPort.on('message', ({ port, ms }) => {
  let answers = 0;
  let bytes = 0;
  let seen = 0;
  const socket = createSocket('udp4');
  const send = () => socket.send(workerData.query);
  socket.on('message', (answer) => {
    answers += 1;
    bytes = answer.length;
    send();
  });
  socket.connect(port, '127.0.0.1', () => {
    for (let sent = 0; sent < workerData.window; sent += 1) send();
  });
  const revived = setInterval(() => {
    if (answers === seen) for (let sent = 0; sent < workerData.window; sent += 1) send();
    seen = answers;
  }, 100);
  setTimeout(() => {
    clearInterval(revived);
    socket.close();
    parentPort.postMessage({ answers, bytes });
  }, ms);
});`;

/** Answers with as many bytes as it is started with. */
const ECHO = `
const reply = Buffer.alloc(Number(process.argv[1]));
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (query, { port, address }) => {
  query.copy(reply);
  socket.send(reply, port, address);
});
socket.bind(0, '127.0.0.1', () => console.log('127.0.0.1:' + socket.address().port));`;

afterAll(async () => {
  await killAll();
  await closeClients();
});

it('answers a second to questions for a service, against a bare echo of dgram', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('dns')}`;
  for (let at = 0; at < 3; at += 1)
    await register(client(connect), 'orders', `i${at}`, { address: `10.0.0.${at}`, port: 8_080 });
  const dns = await listening(runCli(['dns', '--zookeeper', connect, '--listen', '127.0.0.1:0']));
  const name = 'orders.service.nodelease';
  expect(await outcome(dns, name)).toBe(3);
  const query = encode({ type: 'query', id: 1, questions: [{ name, type: 'A' }] });
  const asking = new Worker(CLIENT, { eval: true, workerData: { query, window: WINDOW } });
  const answered = async (address: string) => {
    asking.postMessage({ port: Number(address.split(':')[1]), ms: ROUND_MS });
    return ((await once(asking, 'message')) as [{ answers: number; bytes: number }])[0];
  };
  const rate = async (address: string) => ((await answered(address)).answers * 1_000) / ROUND_MS;
  try {
    const { bytes } = await answered(dns);
    const echo = await listening(runProcess(process.execPath, ['-e', ECHO, String(bytes)]));
    const samples = await inTurns(
      ROUNDS,
      () => rate(echo),
      () => rate(dns),
    );
    const ratio = medianRatio(samples);
    const aSecond = (each: number) => `${Math.round(each).toLocaleString('en')} a second`;
    report(`DNS over UDP, ${WINDOW} questions at once, median of ${ROUNDS.counted} rounds in turns`, [
      [`a bare echo of dgram, answers of ${bytes} bytes too`, aSecond(median(samples.plain)), '1.00'],
      ['nodelease dns, 3 addresses of a service', aSecond(median(samples.ours)), ratio.toFixed(2)],
      ['bound', '', BOUND.toFixed(2)],
    ]);
    expect(ratio).toBeGreaterThanOrEqual(BOUND);
  } finally {
    await asking.terminate();
  }
});
