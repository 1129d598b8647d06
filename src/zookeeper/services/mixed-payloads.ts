import { objectIn } from '../../core/base/fields.js';
import { nameAt, parentOf } from '../client/znode-path.js';
import { type CallOptions, ignoring, type ZooKeeper, ZooKeeperError } from '../client/zookeeper.js';
import { DUBBO_CLASS, isDubboFolder } from './instance/dubbo-instance.js';
import { classOf, MAP_CLASSES, SPRING_CLASS } from './instance/payload-codec.js';
import { shortened } from './shortened.js';

// Java programs cast the payloads of a service to one class. One that is not of it fails the query for all
// instances. Every class but Dubbo's may be absent: an instance without a payload is readable for the others.

/** The part of an instance, or of the JSON of one, that decides who can read it. */
type ReadableBy = { readonly [Field in 'payload' | 'port' | 'sslPort']?: unknown };

const NONE = 'no payload';
const PLAIN = 'plain JSON';

/** The name of the class that a payload names, else one of the two kinds above. */
function kindOf({ payload }: ReadableBy): string {
  const type = classOf(payload);
  if (type === undefined || MAP_CLASSES.includes(type)) return payload == null ? NONE : PLAIN;
  return `${shortened(type)}`;
}

/**
 * Why Java programs cannot read a service with these instances, as the rest of the sentence "<path> …";
 * undefined where all payloads are of one kind.
 */
export function mixedPayloads(instances: readonly ReadableBy[]): string | undefined {
  const kinds = new Set(instances.map(kindOf));
  if (!kinds.has(DUBBO_CLASS)) kinds.delete(NONE);
  return kinds.size < 2
    ? undefined
    : `has instances of different payload classes, so Java programs cannot read it: ${[...kinds].join(', ')}`;
}

/**
 * Why a new instance would make a service unreadable for the program that registered a present one, and what
 * to do, as the rest of the sentence "<path> …"; undefined where it would not. Present plain JSON never keeps
 * a new instance out: its readers are unknown.
 */
export function payloadConflict(present: ReadableBy, own: ReadableBy): string | undefined {
  const [theirs, ours] = [kindOf(present), kindOf(own)];
  if (theirs === NONE || theirs === PLAIN) return undefined;
  const found = `has an instance with a payload of ${theirs}`;
  const isSpring = theirs === SPRING_CLASS;
  if (isSpring && own.port == null && own.sslPort == null)
    return `${found}, and Spring cannot read a service with an instance that has no port: use --port, or another service name`;
  if (theirs === ours || (ours === NONE && theirs !== DUBBO_CLASS)) return undefined;
  const advice =
    theirs === DUBBO_CLASS
      ? 'use another service name'
      : isSpring
        ? 'use --payload-type spring (springPayload in the library), or another service name'
        : 'leave out the payload, or use another service name';
  return `${found}. With this one, which has ${ours}, Java programs could not read the service: ${advice}`;
}

/** Whether the same programs can read a service with an instance before and after a change of its data. */
export function isReadAlike(before: Buffer | string, after: Buffer | string): boolean {
  const [was = '', now] = [before, after].map((data) => {
    const own: ReadableBy = objectIn(data) ?? {};
    return `${kindOf(own)} ${own.port == null && own.sslPort == null}`;
  });
  return was === now;
}

/** Maximum number of present instances that a new one is compared with: a fleet may start at once. */
const MAX_COMPARED = 10;

/** A new instance. */
interface NewInstance {
  /** Of its znode. */
  readonly path: string;
  readonly data: string;
}

/**
 * The refusal of a new instance: a program that registered a present one could not read the service with it.
 * Undefined where nothing speaks against it. Not guaranteed where programs register at the same moment, nor
 * among more than 10 instances.
 */
export async function refusalOf(
  zookeeper: ZooKeeper,
  own: NewInstance,
  call: CallOptions,
): Promise<ZooKeeperError | undefined> {
  const present = await presentInstances(zookeeper, own, call);
  const [problem] = present.flatMap((each) => payloadConflict(each, objectIn(own.data) ?? {}) ?? []);
  if (problem === undefined) return undefined;
  const path = parentOf(own.path);
  return new ZooKeeperError(`not registered: ${path} ${problem}`, 'mixed-payloads', 'not-applied', path);
}

/** As {@link mixedPayloads}, of a registered instance and present ones. */
export async function mixedWithPresent(zookeeper: ZooKeeper, own: NewInstance): Promise<string | undefined> {
  const present = await presentInstances(zookeeper, own, {});
  return mixedPayloads([...present, objectIn(own.data) ?? {}]);
}

/** Other instances than this one; what cannot be read is left out. */
async function presentInstances(
  zookeeper: ZooKeeper,
  { path }: NewInstance,
  call: CallOptions,
): Promise<readonly ReadableBy[]> {
  const service = parentOf(path);
  const unread = ignoring('no-auth');
  const ids = (await zookeeper.children(service, call).catch(unread)) ?? [];
  const others = ids.filter((id) => id !== nameAt(path) && !isDubboFolder(id)).slice(0, MAX_COMPARED);
  const znodes = await Promise.all(
    others.map((id) => zookeeper.read(`${service}/${id}`, call).catch(unread)),
  );
  return znodes.map((znode) => (znode && objectIn(znode.data)) ?? {});
}
