import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type NetworkInterfaceInfo, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { containerSign, ensureHome, hostAddress, hostName } from './facts.js';

const nothing = () => {
  throw new Error('A system error occurred: uv_os_homedir returned ENOENT');
};

function homeOf(env: NodeJS.ProcessEnv, ask: () => string): string | undefined {
  ensureHome(env, ask);
  return env.HOME;
}

describe('what a system does not know', () => {
  it('is the home of a user without an entry, who gets one: SDKs fail without', () => {
    expect(homeOf({}, nothing)).toBe('/');
    expect(homeOf({ HOME: '/srv' }, nothing)).toBe('/srv');
    expect(homeOf({}, () => '/home/me')).toBeUndefined();
  });

  it('is the name of the host, which is left out', () => {
    expect(hostName(nothing)).toBe('');
    expect(hostName(() => 'web-3')).toBe('web-3');
  });
});

describe('the address of a host', () => {
  const address = (text: string, internal = false): NetworkInterfaceInfo =>
    ({ address: text, internal, family: text.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo;

  it.each([
    [['127.0.0.1!', '10.0.0.7', '10.0.0.8'], '10.0.0.7'],
    [['fd00::2', '10.0.0.7'], '10.0.0.7'],
    [['fe80::1', '169.254.0.3', 'fd00::2'], 'fd00::2'],
    [['127.0.0.1!', '::1!', 'fe80::1'], '127.0.0.1'],
    [[], '127.0.0.1'],
  ])('is the first that others can reach: of %j it is %s', (texts, expected) => {
    const all = texts.map((text) => address(text.replace('!', ''), text.endsWith('!')));
    expect(hostAddress(() => ({ lo: all.slice(0, 1), eth0: all.slice(1) }))).toBe(expected);
  });
});

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
