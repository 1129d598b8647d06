// Follows the shards of this node, which `nodelease run --shards N` or `serve --shards N` owns. Copy this file; it needs nothing but Node.

import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls `start(shard, token)` for each shard that this program gets. It returns a function that ends the work:
 * the shard moves when that has settled.
 *
 * @param url the value of NODELEASE_URL
 * @param signal ends the following; the work on the shards continues
 */
export async function followShards(url, start, signal) {
  const running = new Map();

  const act = async (event, { shard, token }) => {
    const work = running.get(shard);
    // After a lost connection all events of now come again.
    if (event === 'start' && work?.token !== token) running.set(shard, { token, end: start(shard, token) });
    if (event !== 'stop') return;
    if (work !== undefined) {
      work.ended ??= work.end();
      await work.ended;
      running.delete(shard);
    }
    await answer(shard, token);
  };

  // Sent again until there is an answer. With the token, an answer that is late counts for no later holding.
  const answer = async (shard, token) => {
    for (; !signal.aborted; await sleep(500)) {
      const response = await fetch(`${url}/shards/${shard}/stopped?token=${token}`, { method: 'POST' }).catch(
        () => {},
      );
      if (response !== undefined && response.status < 500) return;
    }
  };

  while (!signal.aborted) {
    try {
      const { body } = await fetch(`${url}/shards/events`, { signal });
      let text = '';
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        const messages = (text + chunk).split('\n\n');
        text = messages.pop();
        for (const message of messages) {
          const [, event, data] = /^event: (.*)\ndata: (.*)$/m.exec(message) ?? [];
          if (event !== undefined) void act(event, JSON.parse(data));
        }
      }
    } catch {
      // nodelease starts its server again; it ends this program when the lease is lost.
    }
    await sleep(500);
  }
}
