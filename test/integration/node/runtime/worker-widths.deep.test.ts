import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { encodeCluster } from '../../../../src/core/lease/model/cluster-config.js';
import { readCluster } from '../../../../src/core/lease/session/cluster-store.js';
import { workerScene } from './worker-scene.js';

const DURATION_MS = 4_000;

const scene = workerScene();

describe('ids that are made wider twice in a row, while the main thread of their holder is blocked', () => {
  /** As an operator who makes ids wider. */
  const widen = async (idWidth: number) => {
    const { session, close } = await scene.openForOperator();
    const cluster = await readCluster(session);
    if (cluster === undefined) throw new Error('no cluster');
    const wider = { body: encodeCluster({ ...cluster.config, idWidth }, cluster.body), metadata: {} };
    expect(await session.write('cluster.json', wider, cluster.etag)).toMatchObject({ status: 'written' });
    await close();
  };
  const lease = async () =>
    JSON.parse(await readFile(join(scene.folder, 'store/0.json'), 'utf8')) as {
      idWidth: number;
      renewal: number;
      narrowIdsUntil: number;
    };
  /**
   * The keeper looks at the settings after each renewal: at the third from now it has done so, and said at
   * the next what came of it.
   */
  const renewedThrice = async () => {
    const { renewal } = await lease();
    await expect
      .poll(async () => (await lease()).renewal, { timeout: 60_000 })
      .toBeGreaterThanOrEqual(renewal + 3);
  };

  it('are announced to others only when the main thread makes the widest, not when it has gone over to the first', async () => {
    const [first, second] = [join(scene.folder, 'first'), join(scene.folder, 'second')];
    const maker = scene.program('blocked-again', scene.store, String(DURATION_MS), first, second);
    const made = () =>
      [...maker.stdout().matchAll(/^(\d+) (\d+)$/gm)].map(([, id = '', bits]) => ({
        id: BigInt(id),
        bits: Number(bits),
      }));
    await maker.waitForOutput(/^\d+ 8$/m, 30_000);
    for (const idWidth of [9, 10]) {
      await widen(idWidth);
      await renewedThrice();
    }
    expect(await lease()).toMatchObject({ idWidth: 8 });
    await writeFile(first, '');
    await maker.waitForOutput(/^blocked again\n\d+ 9$/m, 30_000);
    await renewedThrice();
    // It has said that it makes ids of 9 bits by now, which is no answer to the question of 10.
    expect(await lease()).toMatchObject({ idWidth: 8 });
    expect(new Set(made().map(({ bits }) => bits))).toEqual(new Set([8, 9]));
    await writeFile(second, '');
    await maker.waitForOutput(/^\d+ 10$/m, 30_000);
    await expect.poll(lease, { timeout: 30_000 }).toMatchObject({ idWidth: 10 });
    const ids = made();
    expect(
      ids.every(
        ({ id, bits }, at) => at === 0 || (id > (ids[at - 1]?.id ?? 0n) && bits >= (ids[at - 1]?.bits ?? 0)),
      ),
    ).toBe(true);
    // What the new node ids keep away from.
    const lastNarrow = Number((ids.findLast(({ bits }) => bits < 10)?.id ?? 0n) >> 16n);
    expect((await lease()).narrowIdsUntil).toBeGreaterThanOrEqual(lastNarrow);
  });
});
