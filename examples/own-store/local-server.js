// As much of Consul as a lease store needs: `node local-server.js PORT`, and CONSUL=http://127.0.0.1:PORT for the service.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export async function startLocalServer(port = 0) {
  const rows = new Map();
  let index = 0;
  /** For the next request, in place of an answer: the test of broken replies sets it. */
  const faults = [];

  const answer = async (request) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    const key = decodeURI(pathname.slice('/v1/kv/'.length));
    if (request.method === 'PUT') {
      const [{ KV: change }] = await json(request);
      if ((rows.get(change.Key)?.ModifyIndex ?? 0) !== change.Index)
        return { status: 409, body: { Errors: [] } };
      index += 1;
      rows.set(change.Key, { Key: change.Key, Value: change.Value, ModifyIndex: index });
      return { status: 200, body: { Results: [{ KV: { Key: change.Key, ModifyIndex: index } }] } };
    }
    if (request.method === 'DELETE') return { status: 200, body: rows.delete(key) || true };
    const isMeant = ({ Key }) => (searchParams.has('recurse') ? Key.startsWith(key) : Key === key);
    const found = [...rows.values()].filter(isMeant);
    return found.length > 0 ? { status: 200, body: found } : { status: 404 };
  };
  const server = createServer(async (request, response) => {
    const { status, body } = await answer(request);
    const fault = faults.shift();
    if (fault) return fault(response);
    response.writeHead(status, { 'x-consul-index': index }).end(JSON.stringify(body));
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { endpoint: `http://127.0.0.1:${server.address().port}`, faults, close };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { endpoint } = await startLocalServer(Number(process.argv[2] ?? 8500));
  console.log(endpoint);
}
