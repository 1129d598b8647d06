// Follows the shards of this node, which `nodelease run --shards N` or `serve --shards N` owns. Copy this file; it needs nothing but Node.
// With `--bearer-token-file`, TOKEN_FILE names the same file.

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls `start(shard, token, fail)` for each shard that this program gets. It returns a function that ends the
 * work: the shard moves when that has settled. `fail()` ends it, and another node gets the shard.
 *
 * @param url the value of NODELEASE_URL
 * @param signal ends the work on all shards. Resolves when all of it has ended, and nodelease knows
 */
export async function followShards(url, start, signal) {
  const running = new Map();
  // The stream stays open until all work has ended.
  const over = new AbortController();

  const end = async (shard, work) => {
    work.ended ??= work.end();
    await work.ended;
    if (!work.fails && running.get(shard) === work) running.delete(shard);
  };
  const endAll = () => Promise.all([...running].map(([shard, work]) => end(shard, work)));

  const act = async (event, { shard, token }) => {
    // No shard is this node's any more, or the lease is lost.
    if (event === 'end') return endAll();
    const work = running.get(shard);
    if (event === 'start' && work?.token !== token && !signal.aborted) {
      const own = { token };
      running.set(shard, own);
      own.end = start(shard, token, async () => {
        // It stays in `running`, and so does not begin again under this token.
        own.fails = true;
        // `start` itself may call this.
        await undefined;
        await end(shard, own);
        await post(`${shard}/failed?token=${token}`);
      });
    }
    if (event !== 'stop') return;
    if (work !== undefined) await end(shard, work);
    await post(`${shard}/stopped?token=${token}`);
  };

  const ask = async (path, options) => {
    const { TOKEN_FILE: file } = process.env;
    // Read again each time: tokens are replaced while programs run.
    const headers = file ? { authorization: `Bearer ${(await readFile(file, 'utf8')).trim()}` } : {};
    return fetch(`${url}/shards/${path}`, { ...options, headers });
  };

  // Sent again until there is an answer. With the token, an answer that is late counts for no later holding.
  const post = async (path) => {
    for (let attempts = 0; !signal.aborted || attempts < 5; attempts += 1, await sleep(500)) {
      const response = await ask(path, { method: 'POST' }).catch(() => {});
      if (response !== undefined && response.status < 500 && response.status !== 401) return;
    }
  };

  const finish = async () => {
    await endAll();
    // Without this, a sidecar cannot know that the work has ended: it lets the lease expire.
    await post('stopped');
    over.abort();
  };
  const finished = new Promise((resolve, reject) => {
    const onAbort = () => finish().then(resolve, reject);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });

  while (!over.signal.aborted) {
    try {
      const { ok, status, body } = await ask('events', { signal: over.signal });
      if (!ok) console.error(`${url}/shards/events: status ${status}`);
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
      // nodelease starts its server again. `run` ends this program when the lease is lost.
    }
    // A sidecar that was killed said nothing, and its lease may run out. What is still this node's comes again.
    await endAll();
    await sleep(500, undefined, { signal: over.signal }).catch(() => {});
  }
  await finished;
}
