import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { containerSign } from './container.js';

describe('a container', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodelease-root-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const sign = (env: Record<string, string> = {}, processId = 4711) =>
    containerSign({ env, processId, root });
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };

  it.each([
    'ECS_CONTAINER_METADATA_URI_V4',
    'ECS_CONTAINER_METADATA_URI',
    'KUBERNETES_SERVICE_HOST',
    'AWS_EXECUTION_ENV',
  ])('is known by the variable %s', (name) => {
    expect(sign({ [name]: 'x' })).toBe(`${name} is set`);
  });

  it.each(['/.dockerenv', '/run/.containerenv'])('is known by the file %s', (path) => {
    write(path, '');
    expect(sign()).toBe(`there is ${path}`);
  });

  it.each(['/bin/sh\0/app/node_modules/.bin/nodelease\0run', 'tini\0--\0nodelease\0run'])(
    'is known by its process 1, which starts nodelease: %j',
    (command) => {
      write('/proc/1/cmdline', command);
      expect(sign()).toBe('it is process 1');
    },
  );

  it('is known by being process 1', () => {
    expect(sign({}, 1)).toBe('it is process 1');
  });

  it('is not assumed without a sign, as on a host with systemd', () => {
    expect(sign()).toBeUndefined();
    write('/proc/1/cmdline', '/sbin/init\0splash\0');
    expect(sign({ AWS_REGION: 'eu-central-1' })).toBeUndefined();
  });
});
