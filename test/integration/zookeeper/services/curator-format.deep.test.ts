import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  decodeInstance,
  encodeInstance,
} from '../../../../src/zookeeper/services/instance/instance-codec.js';
import type { ServiceInstanceInit } from '../../../../src/zookeeper/services/instance/new-instance.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import { buildUri, parseUriSpec } from '../../../../src/zookeeper/services/instance/uri-spec.js';
import { packageRoot } from '../../../support/package-root.js';
import {
  type CuratorPeer,
  type JavaInstance,
  startCuratorPeer,
} from '../../../support/peers/curator-peer.js';
import { runJava } from '../../../support/peers/interop.js';
import { stopJavaPeers } from '../../../support/peers/java-peer.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { asJava, instanceOf } from './curator-support.js';

const FIXTURES = join(packageRoot, 'test/fixtures/curator');

let peer: CuratorPeer;

beforeAll(async () => {
  peer = await startCuratorPeer({ connect: inject('zookeeper').connect, basePath: uniqueChroot('curator') });
});

afterAll(stopJavaPeers);

test('the golden files are what Curator writes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-fixtures-'));
  try {
    await runJava('Fixtures', [folder]);
    const names = await readdir(folder);
    expect((await readdir(FIXTURES)).sort()).toEqual([...names].sort());
    for (const name of names)
      expect([name, await readFile(join(FIXTURES, name), 'utf8')]).toEqual([
        name,
        await readFile(join(folder, name), 'utf8'),
      ]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('Curator reads what is written here as it reads its own', async () => {
  for (const file of await readdir(FIXTURES)) {
    const json = await readFile(join(FIXTURES, file), 'utf8');
    const decoded = decodeInstance({ name: 'orders', id: 'i-1', data: Buffer.from(json) }, jsonPayload);
    if (decoded.status !== 'readable') throw new Error(decoded.problem);
    expect([file, await peer.decode(encodeInstance(decoded.instance, jsonPayload))]).toEqual([
      file,
      await peer.decode(json),
    ]);
  }
});

test('Curator reads whatever may be written here, to its last letter', async () => {
  const rows: [Partial<ServiceInstanceInit>, Partial<JavaInstance>?][] = [
    [{}],
    [{ port: undefined, sslPort: 65_535, enabled: false }],
    [{ name: 'é b%2F{x}', id: 'x'.repeat(255), address: '2001:db8::7', registrationTimeUTC: 0 }],
    [{ serviceType: 'DYNAMIC_SEQUENTIAL' }],
    [
      { payload: { nodeId: 7, version: 12, deep: { on: [true, null] } } },
      { payloadClass: 'java.util.LinkedHashMap' },
    ],
    [
      { payload: { '@class': 'java.util.TreeMap', b: 1, a: 2 } },
      { payload: { a: 2, b: 1 }, payloadClass: 'java.util.TreeMap' },
    ],
    [{ payload: ['java.util.ArrayList', ['a']] }, { payload: ['a'], payloadClass: 'java.util.ArrayList' }],
    [{ payload: '\u0000\u001fé\u2028😀"\\/' }, { payloadClass: 'java.lang.String' }],
    [{ payload: 1e-7 }, { payloadClass: 'java.lang.Double' }],
    [{ payload: false }, { payloadClass: 'java.lang.Boolean' }],
    [
      { payload: JSON.parse(`${'{"a":'.repeat(990)}1${'}'.repeat(990)}`) as unknown },
      { payloadClass: 'java.util.LinkedHashMap' },
    ],
    [{ payload: 'x'.repeat(890_000) }, { payloadClass: 'java.lang.String' }],
  ];
  for (const [init, more] of rows) {
    const instance = instanceOf(init);
    expect(await peer.decode(encodeInstance(instance, jsonPayload))).toEqual(asJava(instance, more));
  }
});

test('a URL of variables is the same text on both sides', async () => {
  const specs = [
    '{scheme}://{address}:{port}',
    '{ssl-port}/{name}/{id}/{registration-time-utc}/{service-type}',
    '{[}x{]}',
    '{unknown}|{ }|{}|',
    '{ id }',
    '',
  ];
  for (const spec of specs) {
    for (const change of [{}, { sslPort: 8443 }, { port: undefined, serviceType: 'PERMANENT' as const }]) {
      const instance = instanceOf({ uriSpec: spec, ...change });
      const { url } = await peer.decode(encodeInstance(instance, jsonPayload));
      expect([spec, buildUri(parseUriSpec(spec), instance)]).toEqual([spec, url]);
    }
  }
});

test('what Curator can read is read alike, and what it cannot is unreadable', async () => {
  const values: Record<string, readonly string[]> = {
    enabled: ['true', 'false', 'null', '"true"', '" False "', '""', '"yes"', '0', '2', '1.5', '[]', '{}'],
    port: [
      '8080',
      '"8080"',
      '" 8080 "',
      '""',
      '"null"',
      '8080.7',
      '1e3',
      '"8080.5"',
      '99999999999',
      '"x"',
      'true',
      '[80]',
      '{}',
      'null',
    ],
    registrationTimeUTC: [
      'null',
      '5',
      '"5"',
      '""',
      '"soon"',
      '5.9',
      '-5',
      '1e30',
      'true',
      '[]',
      '{}',
      '"5.5"',
    ],
    serviceType: [
      '"STATIC"',
      '"static"',
      '""',
      '" PERMANENT "',
      '0',
      '3',
      '4',
      '-1',
      '"1"',
      '1.5',
      'true',
      '{}',
    ],
    uriSpec: [
      'null',
      '{}',
      '{"parts":[]}',
      '{"parts":[{}]}',
      '{"parts":[{"value":"id","variable":"true","x":1}],"y":2}',
      '{"parts":{}}',
      '[]',
      '"{id}x"',
      '"{id"',
      '""',
      '5',
    ],
    name: ['"a"', '5', '7.5', 'true', '{}', '["a"]'],
    unknown: [
      '{"a":[{}]}',
      `${'['.repeat(990)}${']'.repeat(990)}`,
      `${'['.repeat(1_010)}${']'.repeat(1_010)}`,
    ],
  };
  const texts = Object.entries(values).flatMap(([field, each]) =>
    each.map((value) => `{"name":"n","id":"i","${field}":${value}}`),
  );
  const whole = [
    '{}',
    '',
    ' ',
    'null',
    '[]',
    '5',
    '"x"',
    '{"name":"a",}',
    "{'name':'a'}",
    '/**/{}',
    '{"port":08}',
    '\ufeff{"name":"n"}',
    '\r\n\t {}\n',
    '{"port":1,"port":2}',
    '{"name":"a\tb"}',
  ];
  for (const json of [...texts, ...whole]) {
    const reported = await peer.decode(json).catch(() => undefined);
    const decoded = decodeInstance({ name: 'n', id: 'i', data: Buffer.from(json) }, jsonPayload);
    const label = json.slice(0, 80);
    if (reported === undefined || decoded.status === 'unreadable') {
      expect([label, decoded.status]).toEqual([label, reported === undefined ? 'unreadable' : 'readable']);
      continue;
    }
    // Where the JSON has no name, the znode's is taken; Curator gives none.
    const expected = { ...reported, name: reported.name || 'n', id: reported.id || 'i' };
    expect([label, asJava(decoded.instance)]).toEqual([label, expected]);
  }
});
