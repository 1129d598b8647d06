// Stands in for the database, the one part that has to refuse a process that lost a node id without knowing it yet. In SQL, in one transaction:
//
//   INSERT INTO writers AS known (node, version) VALUES ($node, $version)
//     ON CONFLICT (node) DO UPDATE SET version = $version WHERE known.version <= $version;
//   -- no row was written: somebody newer has been here; roll back and answer 409
//   INSERT INTO orders (id, node, version, item) VALUES ($id, $node, $version, $item);

import { createServer } from 'node:http';

const newest = new Map();
const orders = new Map();

const server = createServer(async (request, response) => {
  const answer = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (request.method === 'GET') return answer(200, [...orders.values()]);
  let text = '';
  for await (const chunk of request) text += chunk;
  const { id, node, version, item } = JSON.parse(text);
  const known = newest.get(node) ?? 0;
  if (version < known) return answer(409, { error: `node ${node} is at version ${known}, not ${version}` });
  if (orders.has(id)) return answer(409, { error: `there is an order ${id} already` });
  newest.set(node, version);
  orders.set(id, { id, node, version, item });
  answer(201, { id });
});

server.listen(Number(process.env.PORT ?? 5433), '127.0.0.1', () =>
  console.log(`database at http://127.0.0.1:${server.address().port}`),
);
