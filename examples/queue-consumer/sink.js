// Stands for a database: takes each job once, and refuses the tokens of earlier owners of a partition.

import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const highest = new Map();
const taken = new Set();

const server = createServer(async (request, response) => {
  const { partition, token, job } = await json(request);
  // In a database: one transaction with the write, `UPDATE … SET token = $1 WHERE partition = $2 AND token <= $1`.
  if (token < (highest.get(partition) ?? 0)) return response.writeHead(409).end();
  highest.set(partition, token);
  if (!taken.has(job)) console.log(`took ${job} of ${partition} with token ${token}`);
  taken.add(job);
  response.end();
});
server.listen(Number(process.env.PORT ?? 7171), '127.0.0.1', () =>
  console.log(`sink at http://127.0.0.1:${server.address().port}`),
);
