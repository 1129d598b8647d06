import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { taskNames } from './task-id.js';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function metadataServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v4/0123`;
}

/** Takes a request and never answers. */
async function silentServer() {
  let heard = () => {};
  const asked = new Promise<void>((resolve) => {
    heard = resolve;
  });
  return { url: await metadataServer(() => heard()), asked };
}

function scene(env: Record<string, string>, hostname = 'web.example', given = {}) {
  const clock = new VirtualClock();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const abort = new AbortController();
  const names = taskNames({
    ...{ ...given, env, hostname, clock, warn },
    random: seededRandom(1),
    signal: abort.signal,
  });
  return { clock, warnings, names, taskId: names.then(({ taskId }) => taskId), abort };
}

describe('the default task id', () => {
  it('is the id of the ECS task where there is one', async () => {
    const paths: (string | undefined)[] = [];
    const url = await metadataServer((request, response) => {
      paths.push(request.url);
      response.end(
        JSON.stringify({
          Cluster: 'c',
          TaskARN: 'arn:aws:ecs:eu-west-1:111122223333:task/c/158d1c8083dd49d6b527399fd6414f5c',
        }),
      );
    });
    const { taskId, warnings, clock } = scene({ ECS_CONTAINER_METADATA_URI_V4: url });
    await expect(taskId).resolves.toBe('158d1c8083dd49d6b527399fd6414f5c');
    expect(paths).toEqual(['/v4/0123/task']);
    expect(warnings).toEqual([]);
    expect(clock.sleepers).toBe(0);
  });

  it('is the host name and a random part elsewhere', async () => {
    await expect(scene({}).taskId).resolves.toMatch(/^web\.example-[0-9a-f]{16}$/);
  });

  it('stays within 128 printable characters, whatever the host is called', async () => {
    await expect(scene({}, `ä b${'x'.repeat(300)}`).taskId).resolves.toMatch(/^bx{110}-[0-9a-f]{16}$/);
    await expect(scene({}, 'ö').taskId).resolves.toMatch(/^host-[0-9a-f]{16}$/);
  });

  it.each<[string, RequestListener, RegExp]>([
    ['an error', (_, response) => response.writeHead(500).end(), /HTTP status 500/],
    ['something else than JSON', (_, response) => response.end('<html>'), /not valid JSON/],
    ['no TaskARN', (_, response) => response.end('{}'), /no TaskARN/],
    [
      'an ARN without a task',
      (_, response) => response.end('{"TaskARN":"arn:aws:ecs:x:y:task/"}'),
      /names no task/,
    ],
    ['a broken connection', (request) => request.socket.destroy(), /socket hang up|ECONNRESET/],
    ['more than it should', (_, response) => response.end('x'.repeat(2_000_000)), /not valid JSON/],
  ])(
    'falls back to the host name, with a warning, when the metadata endpoint answers with %s',
    async (_, answer, reason) => {
      const { taskId, warnings } = scene({ ECS_CONTAINER_METADATA_URI_V4: await metadataServer(answer) });
      await expect(taskId).resolves.toMatch(/^web\.example-[0-9a-f]{16}$/);
      expect(warnings).toEqual([expect.stringMatching(reason)]);
    },
  );

  it('falls back when no answer comes within two seconds', async () => {
    const { url, asked } = await silentServer();
    const { taskId, warnings, clock } = scene({ ECS_CONTAINER_METADATA_URI_V4: url });
    await asked;
    await clock.advance(2_000);
    await expect(taskId).resolves.toMatch(/^web\.example-/);
    expect(warnings).toEqual([expect.stringMatching(/no answer within 2000 ms/)]);
  });

  it('falls back when no program listens, or the address is invalid', async () => {
    await expect(scene({ ECS_CONTAINER_METADATA_URI_V4: 'http://127.0.0.1:1' }).taskId).resolves.toMatch(
      /^web\.example-/,
    );
    await expect(scene({ ECS_CONTAINER_METADATA_URI_V4: 'nonsense' }).taskId).resolves.toMatch(
      /^web\.example-/,
    );
  });

  it('is not waited for after an interruption', async () => {
    const { url, asked } = await silentServer();
    const { taskId, abort } = scene({ ECS_CONTAINER_METADATA_URI_V4: url });
    await asked;
    abort.abort(new Error('stop'));
    await expect(taskId).rejects.toThrow('stop');
  });
});

describe('the default name of the cluster', () => {
  const TASK = { TaskARN: 'arn:aws:ecs:eu-west-1:111122223333:task/c/158d' };
  const answering = async (fields: object, given = {}) => {
    const url = await metadataServer((_, response) => response.end(JSON.stringify({ ...TASK, ...fields })));
    return scene({ ECS_CONTAINER_METADATA_URI_V4: url }, 'web', given).names;
  };

  it('is the ECS service, where the metadata endpoint has it', async () => {
    expect(await answering({ ServiceName: 'orders' })).toEqual({ taskId: '158d', clusterName: 'orders' });
    expect(await answering({ ServiceName: 'orders' }, { taskId: 'me' })).toEqual({
      taskId: 'me',
      clusterName: 'orders',
    });
  });

  it.each([{}, { ServiceName: '' }, { ServiceName: null }])(
    'is none where the endpoint has no service, as on Fargate: %j',
    async (fields) => {
      expect((await answering(fields)).clusterName).toBeUndefined();
    },
  );

  it('gives way to the configured one', async () => {
    const { clusterName } = await answering({ ServiceName: 'green' }, { clusterName: 'orders' });
    expect(clusterName).toBe('orders');
  });

  it('is none, without a word, where the endpoint fails and the task has an id', async () => {
    const { names, warnings } = scene({ ECS_CONTAINER_METADATA_URI_V4: 'nonsense' }, 'web', { taskId: 'me' });
    expect(await names).toEqual({ taskId: 'me', clusterName: undefined });
    expect(warnings).toEqual([]);
  });
});
