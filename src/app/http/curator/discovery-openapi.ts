import { MAX_PORT } from '../../../core/base/ports.js';
import { PROBLEM_CODES } from '../problem.js';

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: object, example?: unknown) => ({
  'application/json': { schema, ...(example !== undefined && { example }) },
});

const EXAMPLE = {
  name: 'orders',
  id: 'ca2fff8e-d756-480c-b59e-8297ff88624b',
  address: '10.20.30.40',
  port: 8080,
  payload: { zone: 'a' },
  registrationTimeUTC: 1_795_219_197_534,
  serviceType: 'STATIC',
};

const PORT = { type: 'integer', minimum: 1, maximum: MAX_PORT };

const TEXT = { type: 'string', minLength: 1 };

const URI_PART = {
  type: 'object',
  required: ['value', 'variable'],
  properties: { value: { type: 'string' }, variable: { type: 'boolean' } },
};

const FIELDS = {
  name: { ...TEXT, description: 'The service.' },
  id: { ...TEXT, description: 'Identifies the instance among those of the service.' },
  address: { type: 'string', description: 'Host name or IP address, without a port.' },
  port: PORT,
  sslPort: { ...PORT, description: 'The port for TLS.' },
  payload: {
    description:
      'Further data of the service: any JSON but null and, since Java cannot read it, an array. An integer beyond 2^53 is given as a text.',
  },
  registrationTimeUTC: {
    type: 'integer',
    description:
      'When it was registered, in milliseconds since the Unix epoch by the clock of the client that did it.',
  },
  uriSpec: {
    type: 'object',
    description: 'How the URL of the instance is made, taken apart: literal texts, and names of variables.',
    required: ['parts'],
    properties: { parts: { type: 'array', items: URI_PART } },
  },
};

const SCHEMAS = {
  ServiceName: {
    type: 'object',
    required: ['name'],
    properties: { name: TEXT },
    additionalProperties: false,
  },
  ServiceNames: { type: 'array', items: ref('ServiceName') },
  ServiceInstance: {
    type: 'object',
    description:
      'The ports that an instance does not have are left out; it may have neither of them. So are uriSpec and enabled.',
    required: ['name', 'id', 'address', 'payload', 'registrationTimeUTC', 'serviceType'],
    properties: {
      ...FIELDS,
      address: {
        type: ['string', 'null'],
        description: 'Host name or IP address, without a port; null if it was registered without one.',
      },
      payload: { description: 'Further data of the service: any JSON, null for nothing.' },
      serviceType: {
        type: 'string',
        enum: ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'],
        description:
          'DYNAMIC and DYNAMIC_SEQUENTIAL go with the ZooKeeper session that registered them, STATIC and PERMANENT stay.',
      },
      enabled: {
        const: false,
        description: 'Only there when it is not to be sent any work for the time being.',
      },
    },
    additionalProperties: false,
  },
  ServiceInstances: { type: 'array', items: ref('ServiceInstance') },
  NewInstance: {
    type: 'object',
    description:
      'Other fields are ignored; null is as good as absent. One without a port is of use to clients that know the port otherwise.',
    required: ['name', 'id', 'address', 'serviceType'],
    properties: {
      ...FIELDS,
      serviceType: {
        type: 'string',
        enum: ['STATIC', 'PERMANENT'],
        description:
          'STATIC: unregistered by the server when no client writes it again in time, if it is configured to. PERMANENT: stays.',
      },
      enabled: { type: 'boolean', description: 'Whether it may be sent work; true unless it is given.' },
    },
  },
  Problem: {
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: { type: 'string', enum: PROBLEM_CODES },
      message: { ...TEXT, description: 'For people: names the field, the value, and what was expected.' },
    },
    additionalProperties: false,
  },
};

const parameter = (name: string, description: string) => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: TEXT,
});
const NAME = parameter('name', 'The service.');
const ID = parameter(
  'id',
  'The instance; of a DYNAMIC_SEQUENTIAL one with the number that ZooKeeper gave it.',
);

const seconds = (description: string) => ({ description, schema: { type: 'integer', minimum: 0 } });
const AGE = {
  age: seconds('There while the server does not hear of changes: for how many seconds it has not.'),
};
const RETRY_AFTER = { 'retry-after': seconds('In how many seconds to ask again.') };

/** @param schema the name of the body's */
const answer = (description: string, schema: string, example?: unknown, headers?: object) => ({
  description,
  ...(headers && { headers }),
  content: json(ref(schema), example),
});
const problem = (description: string, headers?: object) => answer(description, 'Problem', undefined, headers);

const BAD_NAME = problem('The name or the id cannot be those of a service and its instance.');
const FOREIGN_HOST = problem(
  'The request names a host that is not this one (only where the server listens on a loopback address).',
);
const REFUSED = problem('ZooKeeper refuses it, as for want of rights.');
const AWAY = problem('ZooKeeper cannot be asked for the time being.', RETRY_AFTER);
const NO_TOKEN = problem('The server asks for a bearer token, and this is none or not the right one.', {
  'www-authenticate': { description: 'Bearer.', schema: { type: 'string' } },
});
const NO_WRITES = problem(
  'The server is read-only, the request comes from a page of another origin, or names a host that is not this one.',
);
const UNREADABLE = problem(
  'With this instance, the program that registered a present one could not read the service.',
);
const NO_INSTANCE = problem('There is none, or it cannot be understood.');
const DEFAULT = { default: problem('Anything else that goes wrong.') };

/** The answers that a query may get in addition to its own, one with names, and a write. */
const QUERIED = { 403: FOREIGN_HOST, 502: REFUSED, 503: AWAY, ...DEFAULT };
const QUERIED_BY_NAME = { 400: BAD_NAME, ...QUERIED };
const WRITTEN = { 401: NO_TOKEN, 403: NO_WRITES, 502: REFUSED, 503: AWAY, ...DEFAULT };
const SECURITY = [{}, { bearer: [] }];

/**
 * What the discovery server offers, as a document of OpenAPI 3.1. Its addresses are relative to where it is
 * found itself.
 */
export const DISCOVERY_OPENAPI: Readonly<Record<string, unknown>> = {
  openapi: '3.1.0',
  info: {
    title: 'nodelease discovery server',
    version: '1',
    description:
      'Who offers which service, as registered in ZooKeeper for Apache Curator. The shape is that of Curator’s own discovery server.',
    license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: './/', description: 'Next to this document.' }],
  paths: {
    '/openapi.json': {
      get: {
        operationId: 'getDocument',
        summary: 'This document',
        responses: {
          200: {
            description: 'A document of OpenAPI 3.1.',
            content: json({ type: 'object', required: ['openapi', 'paths'] }),
          },
          403: FOREIGN_HOST,
          ...DEFAULT,
        },
      },
    },
    '/v1/service': {
      get: {
        operationId: 'getNames',
        summary: 'The names of all services',
        description:
          'In the order of their characters. One whose last instance has left may be among them for a while.',
        responses: {
          200: answer('The names.', 'ServiceNames', [{ name: 'billing' }, { name: 'orders' }]),
          ...QUERIED,
        },
      },
    },
    '/v1/service/{name}': {
      get: {
        operationId: 'getInstances',
        summary: 'All instances of a service',
        description:
          'Disabled ones included; an empty list for a service that does not exist. What cannot be understood is left out.',
        parameters: [NAME],
        responses: { 200: answer('The instances.', 'ServiceInstances', [EXAMPLE]), ...QUERIED_BY_NAME },
      },
    },
    '/v1/service/{name}/{id}': {
      get: {
        operationId: 'getInstance',
        summary: 'One instance',
        parameters: [NAME, ID],
        responses: {
          200: answer('The instance.', 'ServiceInstance', EXAMPLE),
          404: NO_INSTANCE,
          ...QUERIED_BY_NAME,
        },
      },
      put: {
        operationId: 'putInstance',
        summary: 'Registers an instance, or writes it again',
        description:
          'It replaces whatever is there. It outlives the server, and stays until it is unregistered.',
        parameters: [NAME, ID],
        requestBody: { required: true, content: json(ref('NewInstance'), EXAMPLE) },
        responses: {
          201: { description: 'It is registered.' },
          400: problem(
            'The body is no instance that may be registered, or its name and id are not those of the path.',
          ),
          413: problem('The body is larger than 1 MiB.'),
          415: problem('The body is not application/json.'),
          409: UNREADABLE,
          ...WRITTEN,
        },
        security: SECURITY,
      },
      delete: {
        operationId: 'deleteInstance',
        summary: 'Unregisters an instance',
        description: [
          'Whatever is there is removed, of any serviceType and of any author: also a DYNAMIC instance that is alive.',
          'A process with nodelease puts its own there again at once. One with Curator in Java does so only after it has lost its session,',
          'and cannot be found until then.',
        ].join(' '),
        parameters: [NAME, ID],
        responses: {
          200: { description: 'It is not registered any more, or never was.' },
          400: BAD_NAME,
          ...WRITTEN,
        },
        security: SECURITY,
      },
    },
    '/v1/anyservice/{name}': {
      get: {
        operationId: 'getAny',
        summary: 'Any instance of a service that is enabled',
        description:
          'As the server’s strategy chooses it, from what the server has seen last: also while ZooKeeper is away.',
        parameters: [NAME],
        responses: {
          200: answer('The instance.', 'ServiceInstance', EXAMPLE, AGE),
          400: BAD_NAME,
          403: FOREIGN_HOST,
          404: problem('There is none that is enabled.', AGE),
          503: problem('ZooKeeper could not be asked for this service yet.', RETRY_AFTER),
          ...DEFAULT,
        },
      },
    },
    '/{name}/{id}': {
      get: {
        operationId: 'getInstanceByOldPath',
        summary: 'One instance, as v1/service/{name}/{id}',
        deprecated: true,
        parameters: [NAME, ID],
        responses: {
          200: answer('The instance.', 'ServiceInstance', EXAMPLE, {
            warning: { description: 'Names the path to ask instead.', schema: { type: 'string' } },
          }),
          404: NO_INSTANCE,
          ...QUERIED_BY_NAME,
        },
      },
    },
  },
  components: {
    schemas: SCHEMAS,
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', description: 'Only where the server was given a token.' },
    },
  },
};
