import { afterEach, expect, it } from 'vitest';
import { type SharedData, sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { expire, recipeScene } from '../recipes/recipe-scene.js';

const scene = recipeScene();
const opened: SharedData[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
});

it('a supervised node whose session has expired has its data back within 2 s after the connection', async () => {
  const client = await scene.open();
  const data = sharedData(client);
  opened.push(data);
  const supervisor = data.supervise();
  await supervisor.whenJoined();
  const claims = await data.map<string, number>('claims', { lifespan: 'ephemeral' });
  for (let n = 0; n < 20; n += 1) await claims.set(`k${n}`, n);
  let connectedAt = Number.POSITIVE_INFINITY;
  client.onState(({ status }) => {
    if (status === 'connected') connectedAt = performance.now();
  });
  await expire(client);
  await expect.poll(() => supervisor.state.status === 'joined' && supervisor.replacements).toBe(1);
  expect(await data.synced()).toBe(true);
  expect(performance.now() - connectedAt).toBeLessThan(2_000);
});
