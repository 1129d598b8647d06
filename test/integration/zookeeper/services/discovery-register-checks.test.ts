import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loggedAt } from '../../../support/fleet.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { comesAndGoes, RegisterScene } from './register-support.js';

let scene: RegisterScene;

beforeEach(async () => {
  scene = await RegisterScene.open();
});
afterEach(() => scene.close());

describe('a command with a health check', () => {
  it('is announced when it answers, out while it does not, and in again: http', () =>
    comesAndGoes(scene, 'http'));

  it('is never announced when it does not answer, and works all the same', async () => {
    const port = await freePort();
    const check = ['--check', `tcp:127.0.0.1:${port}`, '--check-interval', '100ms'];
    const task = scene.start('task', ['--service', 'orders', '--port', '80', ...check, '--duration', '9s']);
    await task.started();
    await task.waitForOutput(/lease renewed/);
    expect(await scene.ids()).toEqual([]);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
  });

  it('does not come back once it is being stopped, however it answers then', async () => {
    const port = await freePort();
    // Unwell for a while, and well again: of an instance that is still asked, that would be a reason to
    // announce it.
    const program = `let status = 200; const { createServer } = require('node:http');
      createServer((_, response) => response.writeHead(status).end()).listen(${port});
      process.on('SIGTERM', () => { status = 503; setTimeout(() => { status = 200; setTimeout(process.exit, 1_000); }, 1_000); });`;
    const check = [
      '--check',
      `http://127.0.0.1:${port}/`,
      '--check-interval',
      '300ms',
      '--check-threshold',
      '2',
    ];
    const service = ['--service', 'orders', '--port', String(port)];
    const task = scene.start(
      'task',
      [...service, ...check],
      `exec "${process.execPath}" -e "${program.replaceAll('\n', ' ')}"`,
    );
    await scene.untilIds(['task']);
    const seen: number[] = [];
    const watch = scene.reader.zookeeper.watchChildren('/services/orders', (names) =>
      seen.push(names?.length ?? 0),
    );
    await watch.first;
    const verdicts = () => task.log().filter(({ fields }) => 'healthy' in fields).length;
    const before = verdicts();
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(0);
    await expect.poll(() => seen.at(-1)).toBe(0);
    expect(seen.slice(seen.indexOf(0)).every((count) => count === 0)).toBe(true);
    expect(verdicts()).toBe(before);
    watch.close();
  });

  it('says in the log what it came to when there is no address to check', async () => {
    const task = scene.start('task', [
      '--service',
      'orders',
      '--port',
      '80',
      '--check',
      'tcp:1',
      '--check-interval',
      '5s',
    ]);
    await task.started();
    await task.waitForOutput(/not announced until tcp:localhost:1 answers: .*ECONNREFUSED/);
    expect(loggedAt(task.log(), /not announced until/)).toBeGreaterThan(0);
  });
});
