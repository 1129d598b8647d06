import { afterEach, beforeEach, expect, it } from 'vitest';
import { restrict } from '../discovery/discovery-support.js';
import { comesAndGoes, RegisterScene } from './register-support.js';

let scene: RegisterScene;

beforeEach(async () => {
  scene = await RegisterScene.open();
});
afterEach(() => scene.close());

it('a command with a health check is announced when it answers, out while it does not, and in again: tcp', () =>
  comesAndGoes(scene, 'tcp'));

it('a command fails where it is required to be announced, and cannot be registered', async () => {
  await scene.reader.zookeeper.createWithParents('/services/orders', '', 'persistent');
  await restrict(scene.connect, '/services/orders', ['read']);
  const task = scene.start('task', ['--service', 'orders', '--port', '80', '--zookeeper-required']);
  expect((await task.exit).code).toBe(69);
  expect(task.log().at(-1)?.msg).toMatch(
    /not in the discovery tree after \d+ ms: .*\/services\/orders\/task/,
  );
  expect(task.stdout()).toBe('');
});
