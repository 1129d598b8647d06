import { describe, expect, it } from 'vitest';
import { WaitTimeoutError } from '../../../../src/core/base/errors.js';
import { barrier } from '../../../../src/zookeeper/recipes/barrier.js';
import { recipeScene, waitingCalls } from './recipe-scene.js';

const PATH = '/barriers/night';
const scene = recipeScene();

describe('a barrier', () => {
  it("is Curator's znode, and holds all that wait until it is removed", async () => {
    const clients = await Promise.all([scene.open(), scene.open(), scene.open()]);
    const [setter] = clients;
    await barrier(setter, PATH, { data: '10.0.0.1' }).set();
    await barrier(setter, PATH).set();
    const znode = await setter.read(PATH);
    expect([znode?.data.toString(), znode?.stat.owner]).toEqual(['10.0.0.1', undefined]);
    let through = 0;
    const waiting = clients.map((client) =>
      barrier(client, PATH)
        .wait()
        .then(() => {
          through += 1;
        }),
    );
    await Promise.all(clients.map((client) => waitingCalls(client, 1)));
    expect(through).toBe(0);
    await barrier(setter, PATH).remove();
    await Promise.all(waiting);
    await barrier(setter, PATH).remove();
    expect(clients.map((client) => client.openWatches)).toEqual([0, 0, 0]);
  });

  it('that was never set is open', async () => {
    const client = await scene.open();
    await barrier(client, PATH).wait({ timeoutMs: 0 });
    await barrier(client, PATH).wait();
  });

  it('is not waited for longer than allowed', async () => {
    const client = await scene.open();
    const gate = barrier(client, PATH);
    await gate.set();
    await expect(gate.wait({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await expect(gate.wait({ timeoutMs: 100 })).rejects.toThrow(
      /\/barriers\/night was not removed within 100 ms/,
    );
    const reason = new Error('enough');
    const over = new AbortController();
    const waiting = gate.wait({ signal: over.signal });
    over.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(gate.wait({ timeoutMs: -1 })).rejects.toThrow(/timeoutMs/);
    expect(client.openWatches).toBe(0);
  });

  it('is waited for over lost connections; where there is none, that is said', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const other = await scene.open();
    await barrier(other, PATH).set();
    const waiting = barrier(client, PATH).wait();
    await expect.poll(() => client.openWatches).toBe(1);
    proxy.cut();
    await barrier(other, PATH).remove();
    proxy.heal();
    await waiting;
    proxy.cut();
    await expect.poll(() => client.state.status).not.toBe('connected');
    const gate = barrier(client, PATH);
    const calls = [gate.wait({ timeoutMs: 200 }), gate.set({ timeoutMs: 200 })];
    await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject({ fault: 'timeout' })));
    // Or close() would wait a second for the servers.
    proxy.heal();
  });

  it('says so where the client is closed, before and during the wait, and where access is denied', async () => {
    const [owner, other] = [await scene.open({ auth: 'digest:me:secret' }), await scene.open()];
    await barrier(owner, PATH).set();
    const waiting = barrier(other, PATH).wait();
    await expect.poll(() => other.openWatches).toBe(1);
    await Promise.all([expect(waiting).rejects.toMatchObject({ fault: 'closed' }), other.close()]);
    await expect(barrier(other, PATH).wait()).rejects.toMatchObject({ fault: 'closed' });
    await owner.create('/mine', '', 'persistent');
    const stranger = await scene.open();
    await expect(barrier(stranger, '/mine/gate').set()).rejects.toMatchObject({ fault: 'no-auth' });
    expect(() => barrier(owner, 'gate')).toThrow(/path: expected an absolute path/);
  });
});
