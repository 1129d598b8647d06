import { readFileSync } from 'node:fs';
import zookeeper from 'node-zookeeper-client';
import { describe, expect, it } from 'vitest';
import { connectionOf, type LibraryClient } from './library-internals.js';

const open = () => zookeeper.createClient('127.0.0.1:1') as zookeeper.Client & LibraryClient;

describe('the insides of the ZooKeeper library', () => {
  it('are those of the version that package.json pins', () => {
    const own = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'));
    const url = import.meta.resolve('node-zookeeper-client/package.json');
    const { version } = JSON.parse(readFileSync(new URL(url), 'utf8'));
    expect(own.dependencies['node-zookeeper-client']).toBe(version);
  });

  it('are all there', () => {
    const client = open();
    expect(connectionOf(client)).toBe(client.connectionManager);
  });

  it('are refused by name if one of them has changed, before anything is replaced', () => {
    const { connectionManager } = open();
    const changed = Object.create(connectionManager, { onSocketData: { value: undefined } });
    expect(() => connectionOf({ connectionManager: changed })).toThrow(
      'node-zookeeper-client 1.1.3 is needed: this version has no function onSocketData',
    );
  });
});
