import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { KEYWORDS, violations } from '../../../../test/support/json-schema.js';
import type { JsonSchema, OpenApiDocument, OpenApiOperation } from '../../../../test/support/openapi.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MAX_PORT } from '../../../core/base/ports.js';
import { ZooKeeperError } from '../../../zookeeper/client/zookeeper-error.js';
import { checkServiceName } from '../../../zookeeper/services/instance/new-instance.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import type { HttpProblem } from '../../http/problem.js';
import { type DiscoveryAppOptions, discoveryApp } from './discovery-app.js';
import type { AnyInstance } from './provider-pool.js';

const DOCUMENT = JSON.parse(
  readFileSync(new URL('./openapi.json', import.meta.url), 'utf8'),
) as OpenApiDocument;
/** The compiler compares them with the codes that there are. */
const CODES: Readonly<Record<HttpProblem['error'], true>> = {
  'bad-request': true,
  unauthorized: true,
  forbidden: true,
  'not-found': true,
  'method-not-allowed': true,
  conflict: true,
  'too-large': true,
  'unsupported-media-type': true,
  internal: true,
  'refused-by-zookeeper': true,
  unavailable: true,
};
const { schemas, securitySchemes } = DOCUMENT.components;

/** Every operation, and every schema anywhere in it. */
const operations = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    path,
    method,
    operation,
    name: `${method.toUpperCase()} ${path}`,
  })),
);

function schemasOf({ parameters = [], requestBody, responses }: OpenApiOperation): JsonSchema[] {
  return [
    ...parameters.map(({ schema }) => schema),
    ...(requestBody ? [requestBody.content['application/json'].schema] : []),
    ...Object.values(responses).flatMap(({ headers = {}, content }) => [
      ...Object.values(headers).map(({ schema }) => schema),
      ...(content ? [content['application/json'].schema] : []),
    ]),
  ];
}

function references(schema: JsonSchema): string[] {
  const { $ref, items, properties = {} } = schema;
  return [
    ...($ref ? [$ref] : []),
    ...[...(items ? [items] : []), ...Object.values(properties)].flatMap(references),
  ];
}

const OPERATION = [
  ...['operationId', 'summary', 'description', 'deprecated'],
  ...['parameters', 'requestBody', 'responses', 'security'],
];
const TYPES = ['object', 'array', 'string', 'integer', 'boolean', 'null'];

function unknownIn(object: object, known: readonly string[]): string[] {
  return Object.keys(object).filter((field) => !known.includes(field));
}

/** Keywords that a schema may not have, and types that do not exist. */
function misspelt(schema: JsonSchema): string[] {
  const { type = [], items, properties = {} } = schema;
  return [
    ...unknownIn(schema, [...KEYWORDS]),
    ...[type].flat().filter((each) => !TYPES.includes(each)),
    ...[...(items ? [items] : []), ...Object.values(properties)].flatMap(misspelt),
  ];
}

describe('the OpenAPI document', () => {
  it('says of every operation what a generator needs to know', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation, name } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
      expect(operation.parameters?.map((parameter) => parameter.name) ?? [], name).toEqual(inPath);
      expect(operation.summary, name).not.toBe('');
      for (const [status, { description }] of Object.entries(operation.responses)) {
        expect(status, name).toMatch(/^([2-5]\d\d|default)$/);
        expect(description, `${name} ${status}`).not.toBe('');
      }
      for (const requirement of operation.security ?? [])
        for (const scheme of Object.keys(requirement)) expect(securitySchemes, name).toHaveProperty(scheme);
    }
  });

  it('has no field but those of OpenAPI 3.1 and of JSON Schema', () => {
    expect(DOCUMENT.openapi).toBe('3.1.0');
    expect(Object.keys(DOCUMENT).sort()).toEqual(['components', 'info', 'openapi', 'paths', 'servers']);
    expect(Object.keys(DOCUMENT.info).sort()).toEqual(['description', 'license', 'title', 'version']);
    for (const { method, operation, name } of operations) {
      expect(['get', 'put', 'delete'], name).toContain(method);
      const { parameters = [], requestBody, responses } = operation;
      expect(unknownIn(operation, OPERATION), name).toEqual([]);
      for (const parameter of parameters) {
        expect(unknownIn(parameter, ['name', 'in', 'required', 'description', 'schema']), name).toEqual([]);
        expect(parameter, name).toMatchObject({ in: 'path', required: true, schema: {} });
      }
      expect(unknownIn(requestBody ?? {}, ['required', 'content']), name).toEqual([]);
      for (const response of Object.values(responses)) {
        expect(unknownIn(response, ['description', 'headers', 'content']), name).toEqual([]);
        for (const header of Object.values(response.headers ?? {}))
          expect(Object.keys(header).sort(), name).toEqual(['description', 'schema']);
        for (const [type, content] of Object.entries(response.content ?? {})) {
          expect(type, name).toBe('application/json');
          expect(unknownIn(content, ['schema', 'example']), name).toEqual([]);
        }
      }
      for (const schema of schemasOf(operation)) expect(misspelt(schema), name).toEqual([]);
    }
    for (const [name, schema] of Object.entries(schemas)) expect(misspelt(schema), name).toEqual([]);
  });

  it('refers only to schemas that it has, and has none that nothing refers to', () => {
    const all = [
      ...operations.flatMap(({ operation }) => schemasOf(operation)),
      ...Object.values(schemas),
    ].flatMap(references);
    const known = Object.keys(schemas).map((schema) => `#/components/schemas/${schema}`);
    expect([...new Set(all)].sort()).toEqual(known.sort());
  });

  it('names every code of a problem, and the highest port', () => {
    expect(schemas.Problem?.properties?.error?.enum).toEqual(Object.keys(CODES));
    for (const name of ['NewInstance', 'ServiceInstance'])
      for (const port of ['port', 'sslPort'])
        expect(schemas[name]?.properties?.[port]?.maximum, `${name} ${port}`).toBe(MAX_PORT);
  });

  it('gives examples that are as its schemas have them', () => {
    for (const { operation, name } of operations) {
      const contents = [
        operation.requestBody?.content,
        ...Object.values(operation.responses).map(({ content }) => content),
      ];
      for (const { example, schema } of contents.flatMap((content) => content?.['application/json'] ?? []))
        if (example !== undefined) expect(violations(example, schema, schemas), name).toEqual([]);
    }
  });
});

const INSTANCE: ServiceInstance = {
  name: 'orders',
  id: '1',
  address: '10.0.0.1',
  port: 8080,
  sslPort: 8443,
  payload: { zone: 'a' },
  registrationTimeUTC: 1_795_000_000_000,
  serviceType: 'DYNAMIC',
  uriSpec: { parts: [{ value: 'scheme', variable: true }] },
  enabled: false,
};
const BARE: ServiceInstance = {
  ...INSTANCE,
  address: undefined,
  port: undefined,
  sslPort: undefined,
  payload: undefined,
  uriSpec: undefined,
  enabled: true,
};
const NEW = { name: 'orders', id: '1', address: '10.0.0.1', port: 8080, serviceType: 'STATIC' };

/** How a status comes about: what is asked, and what differs from a server where everything goes well. */
interface Case {
  readonly path?: string;
  readonly init?: RequestInit;
  readonly failure?: unknown;
  readonly any?: AnyInstance;
  readonly app?: Partial<DiscoveryAppOptions>;
}

const json = { 'content-type': 'application/json' };
const put = (body: string, headers: Record<string, string> = json): RequestInit => ({
  method: 'PUT',
  headers,
  body,
});
const failed = (fault: 'timeout' | 'no-auth') => new ZooKeeperError(fault, fault, 'not-applied');
const FOREIGN: Case = { app: { hosts: new Set() }, path: 'http://evil.example' };
const AWAY: Case = { failure: failed('timeout') };
const REFUSED: Case = { failure: failed('no-auth') };
const MIXED: Case = {
  failure: new ZooKeeperError('mixed', 'mixed-payloads', 'not-applied'),
};
const FAULT: Case = { failure: new TypeError('a bug') };
const BAD_NAME: Case = { failure: undefined, path: '/v1/service/%00' };
const TOKEN: Partial<DiscoveryAppOptions> = {
  writes: { kind: 'token', token: { admits: async () => false } },
};
const REMOVE: RequestInit = { method: 'DELETE' };

const CASES: Readonly<Record<string, Readonly<Record<string, Case>>>> = {
  'GET /openapi.json': { 200: {}, 403: FOREIGN, default: { init: { method: 'POST' } } },
  'GET /v1/service': { 200: {}, 403: FOREIGN, 502: REFUSED, 503: AWAY, default: FAULT },
  'GET /v1/service/{name}': { 200: {}, 400: BAD_NAME, 403: FOREIGN, 502: REFUSED, 503: AWAY, default: FAULT },
  'GET /v1/service/{name}/{id}': {
    200: {},
    400: { path: '/v1/service/orders/%00' },
    403: FOREIGN,
    404: { path: '/v1/service/orders/2' },
    502: REFUSED,
    503: AWAY,
    default: FAULT,
  },
  'PUT /v1/service/{name}/{id}': {
    201: { init: put(JSON.stringify(NEW)) },
    400: { init: put('{}') },
    401: { init: put(JSON.stringify(NEW)), app: TOKEN },
    403: { init: put(JSON.stringify(NEW)), app: { writes: { kind: 'nobody' } } },
    409: { init: put(JSON.stringify(NEW)), ...MIXED },
    413: { init: put(' '.repeat(1_048_577)) },
    415: { init: put('x', { 'content-type': 'text/plain' }) },
    502: { init: put(JSON.stringify(NEW)), ...REFUSED },
    503: { init: put(JSON.stringify(NEW)), ...AWAY },
    default: { init: put(JSON.stringify(NEW)), ...FAULT },
  },
  'DELETE /v1/service/{name}/{id}': {
    200: { init: REMOVE },
    400: { init: REMOVE, path: '/v1/service/orders/%00' },
    401: { init: REMOVE, app: TOKEN },
    403: { init: { ...REMOVE, headers: { origin: 'http://evil.example' } } },
    502: { init: REMOVE, ...REFUSED },
    503: { init: REMOVE, ...AWAY },
    default: { init: REMOVE, ...FAULT },
  },
  'GET /v1/anyservice/{name}': {
    200: { any: { status: 'picked', instance: INSTANCE, staleMs: 1_500 } },
    400: { path: '/v1/anyservice/%00' },
    403: FOREIGN,
    404: { any: { status: 'none', staleMs: 1_500 } },
    503: { any: { status: 'unknown' } },
    default: { init: { method: 'POST' } },
  },
  'GET /{name}/{id}': {
    200: {},
    400: { path: '/orders/%00' },
    403: FOREIGN,
    404: { path: '/orders/2' },
    502: REFUSED,
    503: AWAY,
    default: FAULT,
  },
};

/** An app over a ZooKeeper that does as the case says; names are checked as they are in earnest. */
function appFor({ failure, any, app }: Case) {
  const directory = {
    names: async () => may(failure, ['orders']),
    instances: async (name: string) => may(failure ?? badName(name), [INSTANCE, BARE]),
    instance: async (_: string, id: string) => may(failure ?? badName(id), id === '1' ? INSTANCE : undefined),
    write: async () => may(failure, '/services/orders/1'),
    remove: async (_: string, id: string) => may(failure ?? badName(id), true),
  };
  const pool = {
    any: async (name: string) => may(badName(name), any ?? { status: 'unknown' as const }),
  };
  return discoveryApp({ directory, pool, clock: new VirtualClock(), writes: { kind: 'anybody' }, ...app });
}

function may<T>(failure: unknown, value: T): T {
  if (failure !== undefined) throw failure;
  return value;
}

function badName(name: string): Error | undefined {
  try {
    checkServiceName(name);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

describe('every answer that the document names', () => {
  it('is tried below, and no other answer is', () => {
    const documented = operations.map(({ name, operation }) => [
      name,
      Object.keys(operation.responses).sort(),
    ]);
    expect(Object.entries(CASES).map(([name, cases]) => [name, Object.keys(cases).sort()])).toEqual(
      documented,
    );
  });

  const tried = operations.flatMap(({ name, path, operation }) =>
    Object.entries(operation.responses).map(([status, response]) => ({
      name,
      path,
      status,
      response,
      operation,
    })),
  );

  it.each(tried)(
    '$name $status is given, and is as it says',
    async ({ name, path, status, response, operation }) => {
      const how = CASES[name]?.[status] ?? {};
      const usual = path.replace('{name}', 'orders').replace('{id}', '1');
      const asked = how.path?.startsWith('http') ? `${how.path}${usual}` : (how.path ?? usual);
      const given = await appFor(how).request(asked, how.init);
      if (status === 'default') expect(Object.keys(operation.responses)).not.toContain(String(given.status));
      else expect(given.status).toBe(Number(status));
      const text = await given.text();
      if (response.content === undefined) expect(text).toBe('');
      else {
        expect(given.headers.get('content-type')).toMatch(/^application\/json/);
        expect(violations(JSON.parse(text), response.content['application/json'].schema, schemas)).toEqual(
          [],
        );
      }
      for (const [header, { schema }] of Object.entries(response.headers ?? {})) {
        const value = given.headers.get(header);
        expect(
          violations(schema.type === 'integer' ? Number(value ?? Number.NaN) : value, schema, schemas),
        ).toEqual([]);
      }
    },
  );
});
