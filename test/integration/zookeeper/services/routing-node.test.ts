import http, { type RequestOptions } from 'node:http';
import { connect, type LookupFunction } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type ServiceRequestOptions,
  serviceLookup,
  serviceRequestOptions,
} from '../../../../src/zookeeper/services/routing/index.js';
import { Backends, RecordingProvider } from './routing-support.js';

let backends: Backends;

beforeEach(() => {
  backends = new Backends();
});

afterEach(() => backends.close());

function text(options: RequestOptions | ServiceRequestOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.request(options, async (response) => resolve((await response.toArray()).join('')));
    request.on('error', reject).end();
  });
}

it('lets http.request and net.connect find an instance by the name of the service, for a port that is known', async () => {
  const a = await backends.http('a', (request, response) => response.end(request.headers.host));
  const { port = 0 } = a.instance;
  const lookup = serviceLookup(new RecordingProvider([a]));
  expect(await text({ hostname: 'orders', port, lookup, agent: false })).toBe(`orders:${port}`);
  const socket = connect({ host: 'ORDERS', port, lookup, autoSelectFamily: false });
  await new Promise((resolve) => socket.once('connect', resolve));
  expect(socket.remoteAddress).toBe('127.0.0.1');
  socket.destroy();
});

it('resolves all other names as ever', async () => {
  const a = await backends.http('a');
  const { port = 0 } = a.instance;
  const asked: string[] = [];
  const system: LookupFunction = (hostname, options, callback) => {
    asked.push(hostname);
    if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }]);
    else callback(null, '127.0.0.1', 4);
  };
  const lookup = serviceLookup(new RecordingProvider([]), { lookup: system });
  expect(await text({ hostname: 'elsewhere.example', port, lookup, agent: false })).toBe('a');
  expect(asked).toEqual(['elsewhere.example']);
});

it('fails the request when there is no instance', async () => {
  const lookup = serviceLookup(new RecordingProvider([]));
  await expect(text({ hostname: 'orders', port: 1, lookup, agent: false })).rejects.toMatchObject({
    code: 'NO_INSTANCE',
  });
});

it('picks one instance for each request, over connections that are kept alive for each', async () => {
  const two = [await backends.http('a'), await backends.http('b')];
  const provider = new RecordingProvider(two);
  const agent = new http.Agent({ keepAlive: true });
  try {
    const answers: string[] = [];
    for (let i = 0; i < 10; i += 1)
      answers.push(await text({ ...serviceRequestOptions(provider, '/items'), agent }));
    expect(answers.join('')).toBe('ababababab');
    expect(two.map(({ sockets }) => sockets.size)).toEqual([1, 1]);
  } finally {
    agent.destroy();
  }
});

it('leaves it to the caller to note an error and to ask another instance', async () => {
  const [dead, alive] = [await backends.refusing('dead'), await backends.http('alive')];
  const provider = new RecordingProvider([dead, alive]);
  const first = serviceRequestOptions(provider);
  await expect(text({ ...first, agent: false })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  provider.noteError(first.instance);
  const second = serviceRequestOptions(provider, '/', new Set([first.instance]));
  expect([second.instance.id, await text({ ...second, agent: false })]).toEqual(['alive', 'alive']);
  expect(() => serviceRequestOptions(provider, '/', new Set([first.instance, second.instance]))).toThrow(
    'no instance of orders',
  );
});
