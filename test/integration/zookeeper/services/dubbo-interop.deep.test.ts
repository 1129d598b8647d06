import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { runInProcess } from '../../../support/in-process.js';
import { type DubboPeer, startDubboPeer } from '../../../support/peers/dubbo-peer.js';
import { stopJavaPeers } from '../../../support/peers/java-peer.js';
import { RegisterScene } from './register-support.js';

const APPLICATION = 'demo-provider';
/** Maven fetches some 40 MB, once; four applications start. */
const WITHIN_MS = 900_000;
const CLASS = 'org.apache.dubbo.registry.zookeeper.ZookeeperInstance';

let scene: RegisterScene;
let consumer: DubboPeer;

const start = (role: 'provider' | 'consumer') => {
  const servers = inject('zookeeper').connect;
  return startDubboPeer({
    servers,
    root: scene.connect.slice(servers.length),
    role,
    application: APPLICATION,
  });
};

beforeAll(async () => {
  scene = await RegisterScene.open();
  await start('provider');
  consumer = await start('consumer');
}, WITHIN_MS);
afterEach(() => scene.close());
afterAll(stopJavaPeers);

const discovery = (...args: string[]) => runInProcess(['discovery', ...args, '--zookeeper', scene.connect]);
const register = (service: string) =>
  scene.start('one', ['--service', service, '--address', '10.0.0.7', '--port', '80', '--zookeeper-required']);

test(
  'a provider and a consumer of Dubbo 3.3 work next to nodelease in one tree, and a common name is refused',
  async () => {
    const services = await discovery('services', APPLICATION, '--json');
    const [{ instances }] = JSON.parse(services.answer).services;
    const ports = { dubbo: expect.any(Number), tri: expect.any(Number) };
    expect(instances).toMatchObject([
      {
        payload: { '@class': CLASS },
        dubbo: {
          endpoints: Object.entries(ports).map(([protocol, port]) => ({ protocol, port })),
          revision: expect.stringMatching(/^[0-9a-f]{32}$/),
        },
      },
    ]);
    const [{ address, dubbo }] = instances;
    const [{ port }, tri] = dubbo.endpoints;
    const shown = await discovery('services', APPLICATION);
    const short = `dubbo:${port}, tri:${tri.port} · revision ${dubbo.revision.slice(0, 4)}`;
    expect(shown).toMatchObject({ answer: expect.stringContaining(short), complaints: '' });
    const url = `dubbo://${address}:${port}\n`;
    expect(await discovery('resolve', APPLICATION)).toEqual({ code: 0, answer: url, complaints: '' });

    expect(await consumer.greet('a')).toBe('hello a');
    const neighbor = register('orders');
    await neighbor.started();
    expect((await scene.directory.names()).includes('orders')).toBe(true);
    expect(await consumer.greet('b')).toBe('hello b');
    expect(neighbor.stderr()).not.toContain('mixed-payloads');
    neighbor.kill('SIGTERM');
    await neighbor.exit;

    const intruder = register(APPLICATION);
    expect((await intruder.exit).code).toBe(69);
    expect(intruder.stderr()).toContain(`not registered: /services/${APPLICATION} has an instance`);
    expect(intruder.stderr()).toContain(CLASS);
    // The refusal is right: with such an instance, a running consumer has its last list, and a new one cannot
    // start.
    const path = `/services/${APPLICATION}/intruder`;
    const json = { name: APPLICATION, id: 'intruder', address: '10.0.0.7', port: 80, payload: null };
    await scene.reader.zookeeper.create(path, JSON.stringify(json), 'ephemeral');
    expect((await discovery('services', APPLICATION)).complaints).toContain('different payload classes');
    expect(await consumer.greet('c')).toBe('hello c');
    await expect(start('consumer')).rejects.toThrow(/NullPointerException|ClassCastException/);
    await scene.reader.zookeeper.remove(path);
    expect(await (await start('consumer')).greet('d')).toBe('hello d');
  },
  WITHIN_MS,
);
