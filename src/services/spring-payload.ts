import { ConfigError } from '../base/errors.js';
import type { PayloadCodec } from './payload-codec.js';
import type { ServiceInstance, UriSpec } from './service-instance.js';
import { shortened } from './shortened.js';
import { bracketed, parseUriSpec } from './uri-spec.js';

/** What a Spring Boot application that uses Spring Cloud Zookeeper says of itself beside, and expects of everybody in its services. */
export interface SpringInstance {
  /** Its application context's id, `orders-1` for example; it need not be the instance's. */
  readonly id: string;
  /** The application's name, as a rule the service's. */
  readonly name: string;
  /** What `spring.cloud.zookeeper.discovery.metadata` holds: texts. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The same as JSON, with the class by which Spring's reader knows it. */
export interface SpringInstanceJson extends SpringInstance {
  readonly '@class': typeof SPRING_CLASS;
}

/** Spring's own, and what leads to the right port where that is the one for TLS. */
const URI_SPEC = parseUriSpec('{scheme}://{address}:{port}');
const TLS_URI_SPEC = parseUriSpec('{scheme}://{address}:{ssl-port}');

const SPRING_CLASS = 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance';

/**
 * The payload of an instance that Spring Cloud Zookeeper can read. It casts whatever it finds: one instance with an object of another kind,
 * or with a text, makes the whole service unreadable for it; one without any payload has no metadata.
 *
 * @throws {ConfigError} when id, name or metadata are not texts
 */
export function springInstancePayload({ id, name, metadata }: SpringInstance): SpringInstanceJson {
  checkText(id, 'id');
  checkText(name, 'name');
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    throw new ConfigError('instance.payload.metadata', shortened(metadata), 'an object of texts');
  }
  for (const [key, value] of Object.entries(metadata)) checkText(value, `metadata.${shortened(key)}`);
  return { '@class': SPRING_CLASS, id, name, metadata };
}

function checkText(value: unknown, field: string): void {
  if (typeof value !== 'string') throw new ConfigError(`instance.payload.${field}`, shortened(value), 'a text');
}

/** Whether JSON is a payload of Spring's class, in whatever shape. */
export function isSpringPayload(json: unknown): boolean {
  return (Object(json) as { readonly '@class'?: unknown })['@class'] === SPRING_CLASS;
}

/**
 * The uriSpec that is written for an instance with Spring's payload which tells none: without one Spring's URI is empty.
 *
 * @throws {ConfigError} when it has no port: Spring throws for the whole service then
 */
export function springUriSpec({ address, port, sslPort }: ServiceInstance): UriSpec {
  if (port === undefined && sslPort === undefined) {
    throw new ConfigError('instance.port', port, 'a port or an sslPort (Spring cannot read a service with an instance that has neither)');
  }
  return bracketed(sslPort === undefined ? URI_SPEC : TLS_URI_SPEC, address);
}

/** Whether an instance may be picked by the status in its metadata, as Spring's load balancer sees it: `instance_status` is UP, or there is none. */
export function isInService({ payload }: ServiceInstance): boolean {
  const { metadata } = Object(payload) as { readonly metadata?: unknown };
  const { instance_status: status } = Object(metadata) as { readonly instance_status?: unknown };
  return typeof status !== 'string' || status.trim() === '' || status.toUpperCase() === 'UP';
}

/**
 * Writes and reads Spring's payloads. Others' are understood as far as they go: fields that are missing are empty, metadata that are no
 * texts become their JSON. A payload that is no object of Spring's class makes the instance unreadable, as it is for Spring.
 */
export const springPayload: PayloadCodec<SpringInstance> = {
  encode: springInstancePayload,

  decode(json) {
    if (!isSpringPayload(json)) throw new Error(`its class is not ${SPRING_CLASS}`);
    const { id, name, metadata } = json as Partial<Record<string, unknown>>;
    return { id: textOf(id), name: textOf(name), metadata: metadataOf(metadata) };
  },
};

function metadataOf(json: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(Object(json)).map(([key, value]) => [key, textOf(value)]));
}

function textOf(json: unknown): string {
  if (json === undefined || json === null) return '';
  return typeof json === 'string' ? json : JSON.stringify(json);
}
