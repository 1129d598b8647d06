import { afterEach, expect, inject, it } from 'vitest';
import { fleetStore } from '../../../support/fleet.js';
import { killAll, runCli } from '../../../support/processes.js';
import { faketimeEnvironment, removeTraces } from '../../../support/programs/faketime.js';

afterEach(killAll);

it('ids of hosts whose wall clocks are a day behind, or ahead, are stamped with the store’s time and grow from tenure to tenure', async () => {
  const store = await fleetStore('s3', inject('s3'));
  const ids: bigint[] = [];
  for (const offset of [undefined, '-24h', '+24h', '-24h'] as const) {
    const clock = offset === undefined ? {} : await faketimeEnvironment(offset);
    const call = runCli(['id', '-n', '10', ...store.options], { env: { ...store.env, ...clock } });
    // What the preloaded library itself may say is not ours.
    expect((await call.exit).code).toBe(0);
    await removeTraces(call.pid);
    ids.push(...call.stdout().trimEnd().split('\n').map(BigInt));
    // The server's clock is this machine's, and a right one.
    expect(Math.abs(Number((ids.at(-1) ?? 0n) >> 16n) - Date.now())).toBeLessThan(60_000);
  }
  expect(ids).toHaveLength(40);
  expect(ids.findIndex((id, i) => i > 0 && id <= (ids[i - 1] as bigint))).toBe(-1);
});
