import type { StoreBucket } from './store-servers.js';

/** Creates a bucket on an emulator of Cloud Storage. */
export async function gcsBucket(endpoint: string, name: string): Promise<StoreBucket> {
  const ask = async (path: string, init?: RequestInit): Promise<Response> => {
    const reply = await fetch(`${endpoint}${path}`, init);
    if (!reply.ok && reply.status !== 404)
      throw new Error(`${path}: HTTP ${reply.status}: ${await reply.text()}`);
    return reply;
  };
  const json = { 'content-type': 'application/json' };
  await ask('/storage/v1/b?project=test', { method: 'POST', headers: json, body: JSON.stringify({ name }) });
  const objects = `/storage/v1/b/${name}/o`;
  const path = (key: string) => `${objects}/${encodeURIComponent(key)}`;
  return {
    name,
    url: `gs://${name}`,

    async putRaw(key, body, metadata = {}) {
      const parts = [JSON.stringify({ name: key, metadata }), body].map(
        (part) => `--part\r\nContent-Type: application/json\r\n\r\n${part}\r\n`,
      );
      const headers = { 'content-type': 'multipart/related; boundary=part' };
      await ask(`/upload${objects}?uploadType=multipart`, {
        method: 'POST',
        headers,
        body: `${parts.join('')}--part--\r\n`,
      });
    },

    async getRaw(key) {
      const reply = await ask(path(key));
      if (!reply.ok) return undefined;
      const {
        metadata = {},
        generation,
        updated,
      } = (await reply.json()) as Record<string, string> & { metadata?: Record<string, string> };
      const body = await (await ask(`${path(key)}?alt=media`)).text();
      return { body, metadata, etag: generation ?? '', lastModified: new Date(updated ?? Number.NaN) };
    },

    async listKeys(prefix = '') {
      const { items = [] } = (await (await ask(`${objects}?${new URLSearchParams({ prefix })}`)).json()) as {
        items?: { name: string }[];
      };
      return items.map(({ name: key }) => key);
    },

    async deleteRaw(key) {
      await ask(path(key), { method: 'DELETE' });
    },
  };
}
